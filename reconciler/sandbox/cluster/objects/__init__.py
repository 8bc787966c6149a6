"""Objects of the API server: their types, defaults, validation, storage and the verbs on them."""

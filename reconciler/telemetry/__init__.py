"""Names of events and metrics, logging, suppression of repeats, and masking of secrets."""

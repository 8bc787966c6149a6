"""The next step of drains, and of decisions about sets of nodes, that earlier plans began."""

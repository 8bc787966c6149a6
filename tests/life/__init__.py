"""The laws of a node's life: the real loop on the in-memory world, whatever happens."""

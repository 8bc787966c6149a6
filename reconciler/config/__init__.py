"""Sector configs: reading, checking, resolving; also the only reader of the environment."""

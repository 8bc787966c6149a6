"""Sector configs: reading, checking, resolving; also the only place that reads the environment."""

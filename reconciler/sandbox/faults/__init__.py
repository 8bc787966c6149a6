"""Fault scripts: what goes wrong in the sandbox on purpose, as a file or as a request."""

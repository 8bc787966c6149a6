"""Unit tests of the sandbox."""

"""Unit tests of reconciler.executor."""

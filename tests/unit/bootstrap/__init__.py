"""Unit tests of reconciler.bootstrap."""

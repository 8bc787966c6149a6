"""Unit tests of reconciler.web."""

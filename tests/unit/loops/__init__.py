"""Unit tests of reconciler.loops."""

"""Unit tests of reconciler.adapters."""

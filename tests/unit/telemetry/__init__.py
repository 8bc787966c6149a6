"""Unit tests of reconciler.telemetry."""

"""Faults of the emulated AWS: pools without capacity, scripts, throttling."""

"""The outside world: the real implementation of each port; nothing here decides."""

"""The outside world: each port's real implementation, and nothing that decides."""

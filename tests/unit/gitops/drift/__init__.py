"""Where config, state and EC2 differ."""

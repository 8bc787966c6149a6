"""Rules about single pods."""

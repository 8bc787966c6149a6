"""The descheduler."""

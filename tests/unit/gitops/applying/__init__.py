"""What an apply does beside a running capacity loop."""

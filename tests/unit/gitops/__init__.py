"""The second loop's decisions."""

"""The second loop as a process of its own."""

"""What is reported of a cycle, and to whom."""

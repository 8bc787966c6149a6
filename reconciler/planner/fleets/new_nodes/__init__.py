"""What a new node of a fleet will be: its labels, taints and resources, and the daemons on it."""

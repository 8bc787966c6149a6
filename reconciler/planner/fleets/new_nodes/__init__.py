"""What a new node of a fleet will be: its labels, taints, resources, and daemons."""

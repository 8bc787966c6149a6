"""What takes the pods of nodes that leave: idle, launching or new nodes."""

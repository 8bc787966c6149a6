"""What is happening to a node, whatever its fleet: starting, draining, interrupted, ending."""

"""Spot fleets: pools that EC2 took back, on-demand nodes that stand in, and the way back."""

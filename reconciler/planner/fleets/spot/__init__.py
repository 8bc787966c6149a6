"""For shortages of spot capacity: on-demand stand-ins, and their return to spot."""

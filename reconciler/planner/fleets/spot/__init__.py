"""Where spot is short: on-demand nodes that stand in, and their return to spot."""

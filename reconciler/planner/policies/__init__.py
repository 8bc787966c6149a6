"""The policies, one folder each; `planner.ORDER` has the order in which they run."""

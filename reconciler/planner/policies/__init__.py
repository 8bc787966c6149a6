"""One folder per policy; `planner.ORDER` says in which order they run."""

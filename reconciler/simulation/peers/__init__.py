"""Models of other autoscalers, run on the same world as the capacity loop.

Each model states which parts of the real program it has and which it omits. None of them filters or
places a pod by its own rules: all use the planner's what-if cluster.
"""

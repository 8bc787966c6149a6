"""Models of other autoscalers, played on the same world as the capacity loop.

They are models: each says what of the real program it has, and what it leaves out. None of them
filters or places a pod by rules of its own: they ask the planner's what-if cluster.
"""

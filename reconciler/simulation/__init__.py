"""Virtual time over demand: the real loop, planner and executor on a world in memory.

Nothing here reaches a cluster, EC2 or the clock.
"""

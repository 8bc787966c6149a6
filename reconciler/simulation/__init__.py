"""Simulates demand in virtual time: the real loop, planner and executor on an in-memory world.

Nothing here reaches a cluster, EC2 or the clock.
"""

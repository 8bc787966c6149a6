"""Capacity limits: raises fleets to min_capacity, and removes idle surplus above the maximum."""

from reconciler.planner.policies.capacity_limits.policy import propose

__all__ = ["propose"]

"""Capacity limits: raises fleets to min_capacity, and removes idle surplus above the maximum."""

from reconciler.planner.policies.capacity_limits.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="capacity_limits", propose=propose)

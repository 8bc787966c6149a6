"""Capacity limits: fleets are brought up to min_capacity, and an idle surplus over max goes."""

from reconciler.planner.policies.capacity_limits.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="capacity_limits", propose=propose)

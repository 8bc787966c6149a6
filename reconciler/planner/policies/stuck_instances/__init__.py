"""Stuck instances: those that never became nodes are ended, and EC2 launches others."""

from reconciler.planner.policies.stuck_instances.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="stuck_instances", propose=propose)

"""Headroom: room that is kept free in a sector, so that pods find it without waiting for a node."""

from reconciler.planner.policies.headroom.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="headroom", propose=propose)

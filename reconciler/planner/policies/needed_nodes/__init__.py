"""Needed nodes: no target stays below the nodes that hold pods."""

from reconciler.planner.policies.needed_nodes.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="needed_nodes", propose=propose)

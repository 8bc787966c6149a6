"""Needed nodes: raises targets that are below the number of nodes in use."""

from reconciler.planner.policies.needed_nodes.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="needed_nodes", propose=propose)

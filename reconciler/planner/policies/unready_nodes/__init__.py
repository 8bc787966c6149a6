"""Unready nodes: without an instance their objects go, with one the instance is replaced."""

from reconciler.planner.policies.unready_nodes.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="unready_nodes", propose=propose)

"""Needed nodes: raises targets that are below the number of nodes in use."""

from reconciler.planner.policies.needed_nodes.policy import propose

__all__ = ["propose"]

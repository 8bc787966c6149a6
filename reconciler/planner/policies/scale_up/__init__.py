"""Scale-up: places demand on existing, launching or draining nodes, then buys."""

from reconciler.planner.policies.scale_up.policy import propose

__all__ = ["propose"]

"""Scale-up: places demand on existing, launching or draining nodes, then buys."""

from reconciler.planner.policies.scale_up.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="scale_up", propose=propose)

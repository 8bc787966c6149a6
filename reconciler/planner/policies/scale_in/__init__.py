"""Scale-in: nodes that nothing needs are tainted, checked again and ended."""

from reconciler.planner.policies.scale_in.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="scale_in", propose=propose)

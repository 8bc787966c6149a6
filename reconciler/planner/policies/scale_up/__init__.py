"""Scale-up: place demand on what exists, is launching or can be taken back, then buy."""

from reconciler.planner.policies.scale_up.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="scale_up", propose=propose)

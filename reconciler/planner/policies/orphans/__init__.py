"""Orphans: instances of ours whose fleet is gone are ended once nothing needs them."""

from reconciler.planner.policies.orphans.policy import propose
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="orphans", propose=propose)

"""Headroom: room that is kept free in a sector, so that pods find it without waiting for a node."""

from reconciler.planner.policies.headroom.policy import propose, propose_in_place
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="headroom", propose=propose)

IN_PLACE = PolicySpec(name="headroom", propose=propose_in_place)
"""The same for plans that end no node: none is bought in whose place another would go."""

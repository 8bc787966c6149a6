"""Headroom: room that is kept free in a sector, so that pods need not wait for a node."""

from reconciler.planner.policies.headroom.policy import propose, propose_in_place
from reconciler.planner.policy import PolicySpec

SPEC = PolicySpec(name="headroom", propose=propose)

IN_PLACE = PolicySpec(name="headroom", propose=propose_in_place)
"""The same for plans that end no node: no node is bought to replace another."""

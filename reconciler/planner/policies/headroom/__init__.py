"""Headroom: room that is kept free in a sector, so that pods need not wait for a node."""

from reconciler.planner.policies.headroom.policy import propose, propose_in_place

__all__ = ["propose", "propose_in_place"]

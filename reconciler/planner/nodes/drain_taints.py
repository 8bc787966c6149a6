"""Our taints on a node: whether and why it is being drained."""

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.model.actions import DRAINING_TAINT, UNNEEDED_TAINT, PolicyName
from reconciler.model.cluster import Node


def is_draining(node: Node) -> bool:
    """Return whether the node carries our draining taint."""
    return bool(node.taints) and any(taint.key == DRAINING_TAINT for taint in node.taints)


def has_soft_taint(node: Node) -> bool:
    """Return whether the node carries our soft taint."""
    return bool(node.taints) and any(taint.key == UNNEEDED_TAINT for taint in node.taints)


POLICY_OF_DRAIN: Mapping[str, PolicyName] = MappingProxyType(
    {
        "scale-in": "scale-in",
        "consolidation": "scale-in",
        "rebalance": "interruption",
        "expiry": "expiry",
        "spot-return": "spot-return",
        "rolling-update": "rolling-update",
        "spot-reschedule": "spot-reschedule",
    }
)
"""The drains that are given back if the node is needed or cannot be emptied, by the value of
their taint; the policy is that of the actions that continue them. A drain for an interruption
ends with the node."""

DRAIN_VALUES = frozenset({*POLICY_OF_DRAIN, "interruption"})
"""The values of the draining taints that this program and its node watch set."""


def drain_policy(node: Node) -> PolicyName:
    """Return the policy of the actions that continue the node's drain."""
    found = sorted(drain_reasons(node) & POLICY_OF_DRAIN.keys())
    return POLICY_OF_DRAIN[found[0]] if found else "scale-in"


def drain_reasons(node: Node) -> frozenset[str]:
    """Return the values of the node's draining taints: of our drains, or a person's word."""
    return frozenset(taint.value for taint in node.taints if taint.key == DRAINING_TAINT)


def is_draining_voluntarily(node: Node) -> bool:
    """Return whether the node drains and may be given back.

    That is not so for an interruption, or if a person set the taint.
    """
    return is_draining(node) and drain_reasons(node) <= POLICY_OF_DRAIN.keys()


def is_draining_by_us(node: Node) -> bool:
    """Return whether this program or its node watch set the node's draining taint.

    A person's taint has another value.
    """
    return is_draining(node) and drain_reasons(node) <= DRAIN_VALUES

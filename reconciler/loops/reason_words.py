"""Texts for people for the codes of refusals and of kept nodes; programs use the codes."""

from collections.abc import Mapping
from typing import Final

from reconciler.planner.fleets.health import IS_MISSING

FLEETS_LEFT_OUT: Final[Mapping[str, str]] = {
    "not-maintained": "only fleets of type maintain can be scaled; this one is request or instant",
    "same-name": "an older fleet of this region has the same name, and is the one that is used",
}
REFUSALS: Final[Mapping[str, str]] = {
    "insufficient-cpu": "it asks for more CPU than a new node offers",
    "insufficient-memory": "it asks for more memory than a new node offers",
    "insufficient-pods": "a new node has no pod slot left for it",
    "node-selector": "its nodeSelector matches no fleet's labels",
    "node-affinity": "its required node affinity matches no fleet",
    "taint": "it does not tolerate the fleets' taints",
    "pod-affinity": "it must run near pods that do not run where it could",
    "pod-anti-affinity": "it must not run near pods that run everywhere it could",
    "topology-spread": "its topology spread constraints allow no place",
    "host-port": "its host port is taken on every node",
    "volume-zone": "its volume is in a zone where no fleet launches",
    "volume-limit": "it has more volumes than a node can attach",
    "volume-binding": "its volume claim cannot be bound",
    "volume-in-use": "its volume is in use by another pod",
    "zone": "it needs a zone where no fleet launches",
    "max-capacity": "the fleets that could run it are at max_capacity",
    "max-cost": "another node would exceed max_hourly_usd",
    "raise-limit": "raise_limits allows no more nodes for now",
    "higher-priority": "its node would close a zone to pending pods of higher priority",
    "no-progress": "nodes that were bought for it did not help",
    "no-sector": "it names a sector that the config does not have",
    "fleet-unavailable": "EC2 cannot deliver nodes of the fleets that could run it",
    "too-complex": "it asks for more than is planned for",
    "over-work-budget": "its namespace has too many kinds of pending pods",
    "planning-failed": "planning fails on pods of its namespace, which is a bug",
}
"""By unplaceable code, a clause."""

REMEDIES: Final[Mapping[str, str]] = {
    "max-capacity": "raise max_capacity of one of these fleets",
    "max-cost": "raise max_hourly_usd, or wait until other nodes are gone",
    "raise-limit": "wait, or raise raise_limits",
    "fleet-unavailable": "wait for the cool-off to end, or set spot_fallback",
    "higher-priority": "wait until these pods run",
    "no-progress": "look at why these pods did not bind, then edit them or the fleet",
    "no-sector": "use a sector that the config has",
    "too-complex": "ask for less",
    "over-work-budget": "use fewer different pod specs in this namespace",
    "planning-failed": "report it with a snapshot",
    "volume-in-use": "end the pod that uses its volume",
}
"""By code, what helps when no tested remedy is known."""


MISSING_FLEETS: Final = "the fleets that could run it do not exist in EC2"
MISSING_REMEDY: Final = "apply the Terraform root"


def refusal_in_words(code: str, detail: str = "") -> str:
    """Return the meaning of a code as a clause; `detail` is what the plan adds to it."""
    if detail == IS_MISSING:
        return MISSING_FLEETS
    if code in REFUSALS:
        return REFUSALS[code]
    if code.startswith("insufficient-"):
        return f"it asks for more {code.removeprefix('insufficient-')} than a new node offers"
    return code


def usual_remedy(code: str, detail: str = "") -> str:
    """Return what helps if no tested remedy is known; empty if nothing is known to."""
    return MISSING_REMEDY if detail == IS_MISSING else REMEDIES.get(code, "")

"""Texts for people for the codes of refusals and of kept nodes; programs use the codes."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeVar

from reconciler.model.unplaceable import ReasonKind


class HasKind(Protocol):
    """A reason of one pod, or of all pods of a workload."""

    @property
    def kind(self) -> ReasonKind:
        """Return what distinguishes it from others of its code."""
        ...


R = TypeVar("R", bound=HasKind)

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
    "no-sector": "it names a sector or a fleet that the config does not have",
    "fleet-unavailable": "the fleets that could run it cannot be asked for nodes now",
    "too-complex": "it asks for more than is planned for",
    "over-work-budget": "its namespace has too many kinds of pending pods",
    "planning-failed": "planning fails on pods of its namespace, which is a bug",
}
"""By unplaceable code, a clause."""

REMEDIES: Final[Mapping[str, str]] = {
    "max-capacity": "raise max_capacity of one of these fleets",
    "max-cost": "raise max_hourly_usd, or wait until other nodes are gone",
    "raise-limit": "wait, or raise raise_limits",
    "higher-priority": "wait until these pods run",
    "no-progress": "look at why these pods did not bind, then edit them or the fleet",
    "no-sector": "use a sector, or a fleet, that the config has",
    "too-complex": "ask for less",
    "over-work-budget": "use fewer different pod specs in this namespace",
    "planning-failed": "report it with a snapshot",
    "volume-in-use": "end the pod that uses its volume",
}
"""By code, what helps when no tested remedy is known."""

KIND_REFUSALS: Final[Mapping[ReasonKind, str]] = {
    "missing": "the fleets that could run it do not exist in EC2",
    "silent": "EC2 does not answer where the fleets that could run it are",
    "capacity": "EC2 cannot deliver nodes of the fleets that could run it",
    "quota": "a quota of the account allows no more nodes of the fleets that could run it",
    "launch-fails": "launches of the fleets that could run it fail",
    "denied": "EC2 refuses to raise the fleets that could run it",
    "never-joined": "instances of the fleets that could run it become no usable nodes",
    "halted": "the fleets that could run it are not set up to be scaled",
    "unproven": "it is not proven that the fleets that could run it are this cluster's",
    "spot-fallback": "its spot fleet is unavailable, and keeps its demand off on-demand fleets",
    "later-region": "its demand stays with the fleets of the preferred region",
    "no-fleet": "there is no fleet that could run it",
    "maximum-size": "the groups that could run it are at their maximum size",
    "both-maxima": "the groups that could run it are at max_capacity and their maximum size",
    "departing": "the fleets that could run it are to go, and get no more nodes",
    "below-one-node": "raise_limits is below what one node costs",
}
"""The same of the kinds of a code that have words of their own."""

KIND_REMEDIES: Final[Mapping[ReasonKind, str]] = {
    "missing": "apply the Terraform root",
    "silent": "wait until EC2 answers",
    "state": "look at the fleet in EC2: it serves again when it is active",
    "capacity": "wait, or add instance types, sizes or zones",
    "quota": "raise the quota of this account and region in Service Quotas",
    "launch-fails": "fix what AWS names: the launch template, its image, key or subnets, or the"
    " rights to use them",
    "denied": "compare the role's policy with the one of terraform/reconciler, and see who else"
    " changes these fleets; after server errors look at AWS's health page",
    "never-joined": "look at the console output of such an instance (image, user data, rights); if"
    " it has a node, at `kubectl describe node` (network plugin, kubelet)",
    "halted": "resume the process Launch, or remove the weights",
    "unproven": "check kube-context and config",
    "spot-fallback": "set spot_fallback: on-demand on the spot fleet",
    "maximum-size": "raise the maximum size of the Auto Scaling group",
    "both-maxima": "raise max_capacity and the maximum size of the Auto Scaling group",
    "departing": "add another fleet to the sector, or wait for the new one that replaces it",
    "below-one-node": "raise raise_limits",
}
"""What helps against each kind, where something does."""


def refusal_in_words(code: str, kind: ReasonKind = "") -> str:
    """Return the meaning of a code, and of the kind of its reason, as a clause."""
    if kind in KIND_REFUSALS:
        return KIND_REFUSALS[kind]
    if code in REFUSALS:
        return REFUSALS[code]
    if code.startswith("insufficient-"):
        return f"it asks for more {code.removeprefix('insufficient-')} than a new node offers"
    return code


def usual_remedy(code: str, kind: ReasonKind = "") -> str:
    """Return what helps if no tested remedy is known; empty if nothing is known to."""
    return KIND_REMEDIES.get(kind, "") if kind else REMEDIES.get(code, "")


def without_later_regions(reasons: Sequence[R]) -> Sequence[R]:
    """Return the reasons without those of later regions; all if there are no others.

    Fleets of a later region only wait for the preferred one, whose reason says what helps.
    """
    return [reason for reason in reasons if reason.kind != "later-region"] or reasons

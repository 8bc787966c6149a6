"""Which nodes their fleet would launch differently now, and why.

The version of the launch template stands for the image and the user data, which are part of it.
Such nodes are only replaced by a rolling update (`planner.fleets.updates.rolling_update`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.cluster import Node
from reconciler.model.fleet import TEMPLATE_ID_TAG, Fleet, Instance
from reconciler.model.ids import NodeName
from reconciler.model.plan import DriftedNodes, DriftReason
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.live_fleet import versions_launched

OldAndNew = tuple[dict[NodeName, str], list[Node]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What is known about one node."""

    reasons: Mapping[DriftReason, str]
    """Why it is drifted, in words, by reason; empty if nothing shows that it is."""
    unknown: str = ""
    """Why its launch template version was not compared; empty if it was."""

    def __str__(self) -> str:
        """Return the text for explanations: empty if the node is as its fleet would launch it."""
        texts = [f"drifted: {text}" for text in self.reasons.values()]
        return "; ".join([*texts, *([f"unknown: {self.unknown}"] if self.unknown else [])])


def drift_of(live: Fleet | None, instance: Instance | None) -> Drift:
    """Return what about the instance its fleet would launch differently.

    What cannot be read never makes a node drifted.

    Args:
        live: The fleet as EC2 shows it; None if EC2 does not show it.
        instance: The node's instance; None if EC2 does not show it.
    """
    if live is None or instance is None:
        missing = "fleet" if live is None else "instance"
        return Drift(reasons={}, unknown=f"EC2 does not show its {missing}")
    reasons: dict[DriftReason, str] = {}
    unknown = _why_not_comparable(live, instance)
    own, present = instance.launch_template_version, versions_launched(live, instance)
    if not unknown and own not in present:
        reasons["launch-template-version"] = (
            f"launched from version {own} of the launch template, the fleet's is"
            f" {' or '.join(present)}"
        )
    types_known = bool(instance.instance_type and live.instance_types)
    if types_known and instance.instance_type not in live.instance_types:
        reasons["instance-type"] = f"the fleet no longer launches {instance.instance_type}"
    subnets_known = bool(instance.subnet_id and live.subnet_ids)
    if subnets_known and instance.subnet_id not in live.subnet_ids:
        reasons["subnet"] = f"the fleet no longer launches in {instance.subnet_id}"
    return Drift(reasons=reasons, unknown=unknown)


class DriftOfFleet:
    """`drift_of` for the nodes of one fleet; instances that are alike are compared once.

    Args:
        live: The fleet as EC2 shows it; None if EC2 does not show it.
        instances: Instances by node.
    """

    def __init__(self, live: Fleet | None, instances: Mapping[NodeName, Instance]) -> None:
        self._live = live
        self._instances = instances
        self._known: dict[tuple[str, str, str, str] | None, Drift] = {}

    def of(self, node: NodeName) -> Drift:
        """Return what about the node its fleet would launch differently."""
        instance = self._instances.get(node)
        compared = None
        if instance is not None:
            template = instance.tags.get(TEMPLATE_ID_TAG, "")
            version, subnet = instance.launch_template_version, instance.subnet_id
            compared = (template, version, instance.instance_type, subnet)
        known = self._known.get(compared)
        if known is None:
            known = self._known[compared] = drift_of(self._live, instance)
        return known


def _why_not_comparable(live: Fleet, instance: Instance) -> str:
    """Return why the two versions cannot be compared; empty if they can."""
    template, present = instance.tags.get(TEMPLATE_ID_TAG, ""), versions_launched(live, instance)
    if not all(version.isdigit() for version in present):
        return "the number of the fleet's launch template version cannot be read"
    if not instance.launch_template_version.isdigit():
        return "its instance does not say from which launch template version it was launched"
    if template and live.launch_template_id and not present:
        return f"it was launched from {template}, the fleet's first is {live.launch_template_id}"
    return ""


def old_and_new(
    fleet: FleetNodes, live: Fleet | None, instances: Mapping[NodeName, Instance]
) -> OldAndNew:
    """Return the drifted nodes of a fleet with the reasons, and those known not to be drifted.

    Args:
        fleet: The fleet; a departing one has neither.
        live: What it launches.
        instances: Instances by node.
    """
    old: dict[NodeName, str] = {}
    new: list[Node] = []
    drifts = DriftOfFleet(live, instances)
    for node in () if fleet.settings.departing else fleet.nodes:
        drift = drifts.of(node.name)
        if drift.reasons:
            old[node.name] = ", ".join(drift.reasons.values())
        elif not drift.unknown:
            new.append(node)
    return old, new


def count_drifted(
    fleets: Iterable[FleetNodes], instances: Mapping[NodeName, Instance]
) -> tuple[DriftedNodes, ...]:
    """Return how many nodes of each fleet are drifted, by reason; a node may have several."""
    return tuple(
        DriftedNodes(fleet=s.key.name, region=s.key.region, reason=reason, nodes=nodes)
        for s in fleets
        for reason, nodes in sorted(Counter(_reasons(s, instances)).items())
    )


def _reasons(status: FleetNodes, instances: Mapping[NodeName, Instance]) -> Iterator[DriftReason]:
    drifts = DriftOfFleet(status.live, instances)
    for node in status.nodes:
        yield from drifts.of(node.name).reasons

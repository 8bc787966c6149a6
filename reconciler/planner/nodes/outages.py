"""Regions in which so many nodes do not answer that the nodes are not the cause."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import NodeName, Region
from reconciler.planner.nodes.starting import is_joining, started_at
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.settings import PlannerSettings

UNREADY_ALWAYS = 3
"""At most this many nodes that are not Ready never count as an outage."""
UNREADY_PERCENT_MAX = 45
"""As a share of our nodes in a region: more nodes that are not Ready count as an outage."""


def find_outages(
    nodes: Iterable[tuple[Region, Node]],
    instances: Mapping[NodeName, Instance],
    at: datetime,
    settings: PlannerSettings,
    doubted: Collection[NodeName],
    others: Iterable[Node],
) -> Mapping[Region, str]:
    """Return the regions with an outage, and in words what shows it.

    Args:
        nodes: Our nodes, each with its region.
        instances: Instances by node.
        at: The time of the plan.
        settings: For `instance_init_time`: nodes that may still be joining do not count as silent.
        doubted: Nodes that never took a pod, or are of a version that may not work. Those that
            fell silent within `instance_init_time` after their start show no outage by themselves:
            the same share of the other nodes must be silent too.
        others: Nodes beside these: where all of ours are doubted, a Ready one of them shows that it
            is no outage.
    """
    at_work = {Region(node.labels.get(REGION, "")) for node in others if node.ready}
    ours: Counter[Region] = Counter()
    silent: Counter[Region] = Counter()
    trusted: Counter[Region] = Counter()
    trusted_silent: Counter[Region] = Counter()
    init_seconds = settings.instance_init_seconds
    for region, node in nodes:
        instance = instances.get(node.name)
        is_silent = not (node.ready or is_joining(node, instance, at, settings))
        ours[region] += 1
        silent[region] += is_silent
        early = node.name in doubted and _fell_silent_early(node, instance, init_seconds)
        if not (is_silent and early):
            trusted[region] += 1
            trusted_silent[region] += is_silent
    return {
        region: f"{silent[region]} of {count} nodes are not Ready: the network or the API "
        "server may be the cause"
        for region, count in ours.items()
        if shows_outage(silent[region], count)
        and (
            _are_many(trusted_silent[region], trusted[region])
            if trusted[region]
            else region not in at_work
        )
    }


def _fell_silent_early(node: Node, instance: Instance | None, init_seconds: float) -> bool:
    """Return whether a node that is not Ready never was, or only for a short time."""
    started = started_at(node, instance)
    if started is None or node.ready_changed_at is None:
        return True
    return node.ready_changed_at - started < timedelta(seconds=init_seconds)


def shows_outage(unready: int, nodes: int) -> bool:
    """Return whether so many nodes are not Ready that they are not ended for that.

    Args:
        unready: How many are not Ready.
        nodes: How many there are, these included.
    """
    return unready > UNREADY_ALWAYS and _are_many(unready, nodes)


def _are_many(unready: int, nodes: int) -> bool:
    """Return whether so many nodes are not Ready that the network or the API server is the cause.

    Source: Cluster Autoscaler's --ok-total-unready-count and --max-total-unready-percentage, above
    which it does nothing; the node lifecycle controller evicts from no zone that is all silent.
    """
    return unready * 100 > nodes * UNREADY_PERCENT_MAX

"""Regions in which so many nodes do not answer that the nodes are not to blame."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from reconciler.model.cluster import Node
from reconciler.model.ids import Region
from reconciler.planner.nodes.starting import is_joining

UNREADY_ALWAYS = 3
"""So many nodes that are not Ready are never taken for an outage."""
UNREADY_PERCENT_MAX = 45
"""Of our nodes in a Region; with more that are not Ready, it is an outage."""


def find_outages(
    nodes: Iterable[tuple[Region, Node]], at: datetime, init_seconds: float
) -> Mapping[Region, str]:
    """Return the Regions with an outage, and what shows it, in words.

    Args:
        nodes: Our nodes, each with its Region.
        at: The clock.
        init_seconds: `instance_init_time`: nodes that may still be on their way are not silent.
    """
    ours: Counter[Region] = Counter()
    silent: Counter[Region] = Counter()
    for region, node in nodes:
        ours[region] += 1
        silent[region] += not (node.ready or is_joining(node, at, init_seconds))
    return {
        region: f"{silent[region]} of {count} nodes are not Ready: their network is to blame, or "
        "the API server's, and none is ended for it"
        for region, count in ours.items()
        if _is_outage(silent[region], count)
    }


def _is_outage(unready: int, nodes: int) -> bool:
    """Return whether so many nodes are not Ready that the network or the API server is to blame.

    Source: Cluster Autoscaler's --ok-total-unready-count and --max-total-unready-percentage, from
    which on it does nothing; the node lifecycle controller evicts from no zone that is all silent.
    """
    return unready > UNREADY_ALWAYS and unready * 100 > nodes * UNREADY_PERCENT_MAX

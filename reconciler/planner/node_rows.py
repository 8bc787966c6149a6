"""Makes rows of the what-if cluster from nodes."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import Labels
from reconciler.planner.placement.kinds import HOSTNAME, ZONE, ZONE_KEYS, region_of_open
from reconciler.planner.placement.simulation import NO_LIMITS, RowSpec


def node_row(
    node: Node,
    *,
    taints: Iterable[Taint] | None = None,
    closed: bool = False,
    has_hostname: bool = True,
    volume_limits: Mapping[str, int | None] = NO_LIMITS,
) -> RowSpec:
    """Return the row of a node.

    Args:
        node: The node.
        taints: The taints to assume; None for its own.
        closed: Whether nothing more may be placed there, whatever a pod tolerates.
        has_hostname: Whether it is a domain of rules by hostname.
        volume_limits: How many volumes it attaches, per CSI driver.
    """
    labels = node.labels
    if not has_hostname and HOSTNAME in labels:
        labels = Labels({key: value for key, value in labels.items() if key != HOSTNAME})
    closed = closed or node.unschedulable or node.unreadable or node.deleting
    return RowSpec(
        name=node.name,
        variants=(labels,),
        taints=node.taints if taints is None else tuple(taints),
        schedulable=node.ready and not closed,
        allocatable=node.allocatable,
        volume_limits=volume_limits,
    )


def in_each_zone(row: RowSpec) -> Iterator[RowSpec]:
    """Yield a new node's row for each zone in which it may start; nothing if there is only one.

    Pods that are pinned to a zone will be scheduled there too, and take room that none of them
    takes on a row with an unknown zone. Zones without a name are left out.
    """
    zones = sorted({variant.get(ZONE, "") for variant in row.variants})
    if len(zones) < 2:
        return
    for zone in zones:
        if not region_of_open(zone):
            variants = tuple(each for each in row.variants if each.get(ZONE, "") == zone)
            yield row._replace(variants=variants)


def in_some_zone(row: RowSpec, seen: str) -> list[RowSpec]:
    """Return a new node's row for each zone in which it may start.

    Args:
        row: The row.
        seen: The zone of a node of the same fleet: if nothing says in which zones the fleet
            launches, it is one of them.
    """
    if any(region_of_open(variant.get(ZONE, "")) for variant in row.variants) and seen:
        zone = dict.fromkeys(ZONE_KEYS, seen)
        return [row, row._replace(variants=tuple(Labels({**v, **zone}) for v in row.variants))]
    return list(in_each_zone(row)) or [row]

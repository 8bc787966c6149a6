"""Tries changes on the what-if cluster as it will be once the plan is carried out."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.explain.repair import Repair, spec_changed
from reconciler.planner.explain.repairs import wanted_zones, zoned
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import inter_pod_affinity, topology_spread
from reconciler.planner.placement.kinds import ZONE_KEYS
from reconciler.planner.view import ClusterView

_ANOTHER = "another zone"
"""Stands for a zone in which nothing runs yet; no zone has this name."""


def loosened(pod: Pod) -> Iterator[tuple[Pod, str, int]]:
    """Yield the pod without one of its rules about other pods, then without all."""
    spec = pod.spec
    for i, constraint in enumerate(spec.topology_spread):
        if constraint.hard:
            rest = tuple(c for j, c in enumerate(spec.topology_spread) if j != i)
            what = f"make the topology spread over {constraint.topology_key} ScheduleAnyway"
            yield spec_changed(pod, topology_spread=rest), what, 4
    for i, term in enumerate(spec.pod_anti_affinity):
        rest_anti = tuple(t for j, t in enumerate(spec.pod_anti_affinity) if j != i)
        what = f"make the pod anti-affinity over {term.topology_key} preferred"
        yield spec_changed(pod, pod_anti_affinity=rest_anti), what, 5
    for i, term in enumerate(spec.pod_affinity):
        rest_near = tuple(t for j, t in enumerate(spec.pod_affinity) if j != i)
        what = f"make the pod affinity over {term.topology_key} preferred"
        yield spec_changed(pod, pod_affinity=rest_near), what, 5
    if len(spec.topology_spread) + len(spec.pod_anti_affinity) + len(spec.pod_affinity) > 1:
        free = spec_changed(pod, topology_spread=(), pod_anti_affinity=(), pod_affinity=())
        yield free, "make its affinity, anti-affinity and spread preferences", 9


def variants_of(repair: Repair) -> Iterator[Pod]:
    """Yield every pod that `complete` may ask about."""
    yield repair.pod
    for pod, _, _ in loosened(repair.pod):
        yield pod


def complete(builder: PlanBuilder, repair: Repair) -> Repair | None:
    """Return the repair with the further changes that rules between pods need; None if none helps.

    Args:
        builder: A finished plan that knows `variants_of(repair)`.
        repair: The changes for static filters and size.
    """
    if fits(builder, repair):
        return repair
    name = repair.row.name.split("@", maxsplit=1)[0]
    for zone in _zones_to_try(builder.view, repair):
        change = f"give a fleet like {name} `zone: {zone}`"
        fixed = repair.with_row(zoned(repair.row, zone), change, 2)
        if fits(builder, fixed):
            return fixed
    for pod, what, weight in loosened(repair.pod):
        changed = repair.with_pod(pod, what, weight)
        if fits(builder, changed):
            return changed
    # For rules of other pods against this one only a domain without those pods helps.
    elsewhere = zoned(repair.row, _ANOTHER)
    added = repair.with_row(elsewhere, f"add a fleet like {name} in another zone", 6)
    return added if fits(builder, added) else None


def _zones_to_try(view: ClusterView, repair: Repair) -> list[str]:
    """Return zones of the fleet, of its nodes and of the pod, if the fleet has several."""
    zones = {v.get(key, "") for v in repair.row.variants for key in ZONE_KEYS}
    if len(zones) <= 1:
        return []
    needs = view.table.of(repair.pod, bound=False).volumes
    there = {n.labels[key] for n in view.nodes.values() for key in ZONE_KEYS if key in n.labels}
    return list(dict.fromkeys([*wanted_zones(repair.pod.spec, needs, repair.row), *sorted(there)]))


def fits(builder: PlanBuilder, repair: Repair) -> bool:
    """Return whether a new node of the changed fleet takes the changed pod by every filter."""
    mark = builder.sim.fork()
    try:
        at = builder.sim.add_row(repair.row._replace(imagined=True))
        return bool(builder.sim.room(builder.view.table.of(repair.pod, bound=False))[at] > 0)
    finally:
        builder.sim.revert(mark)


def refusals_of_nodes(builder: PlanBuilder, pod_class: PodClass) -> Counter[str]:
    """Return how many existing nodes do not take the class, by the first filter's code."""
    sim = builder.sim
    found: Counter[str] = Counter()
    rows = np.array(sorted(builder.view.row_of.values()), dtype=np.int64)
    if not len(rows):
        return found
    room = sim.room(pod_class)
    resource_room = sim.resource_room(pod_class)
    for row in rows[room[rows] <= 0].tolist():
        code = sim.refusal(pod_class, int(sim.kinds[row]))
        if not code and resource_room[row] <= 0:
            code = _scarcest_resource(builder, pod_class, row)
        found[code or _rule(builder, pod_class, row)] += 1
    return found


def _scarcest_resource(builder: PlanBuilder, pod_class: PodClass, row: int) -> str:
    """Return the resource of which the row has least in relation to the request."""
    columns = pod_class.columns
    share = builder.sim.free[row][columns] / pod_class.requests[columns]
    column = int(columns[int(np.argmin(share))])
    return builder.sim.dimensions.code(column, pod_class.spec.requests)


def _rule(builder: PlanBuilder, pod_class: PodClass, row: int) -> str:
    sim, links = builder.sim, builder.sim.links(pod_class)
    ones = np.ones(sim.rows, dtype=np.int64)
    if inter_pod_affinity.anti_affinity_room(links, ones)[row] <= 0:
        return "pod-anti-affinity"
    if inter_pod_affinity.affinity_room(links, ones)[row] <= 0:
        return "volume-zone" if links.follows_claim else "pod-affinity"
    room = topology_spread.room(links, ones, sim.kinds, sim.topologies, sim.version)
    return "topology-spread" if room[row] <= 0 else "pod-anti-affinity"

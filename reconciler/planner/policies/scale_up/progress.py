"""Demand that gets nowhere: nodes join for it and its pods do not bind (docs/failures.md).

The planner asks for a node that should take a pod by all that is known of its fleet. Where that is
wrong (a label that the image does not set, a taint that somebody adds), the node joins, refuses
the pod, and the next plan would ask for another. Twice is enough: then the kind of pods waits
until its spec or the fleet changes, or one of its pods runs on such a node after all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from reconciler.model.cluster import Node, Pod, PodSpec
from reconciler.model.ids import FleetKey, Region
from reconciler.model.memory import DemandMemory
from reconciler.planner.cycle import Cycle, WaitingClass
from reconciler.planner.digests import digest_of
from reconciler.planner.fleets.inventory import FleetStatus, is_draining, is_joining
from reconciler.planner.fleets.version import version_of
from reconciler.planner.leaving.idleness import is_empty
from reconciler.planner.text import counted_noun

STRIKES_MAX = 2
"""So often nodes may join in vain."""
FORGOTTEN_AFTER = timedelta(hours=1)
"""Quarantined pods that are gone may come back within that time and find nothing forgotten."""

_DIGESTS_MAX = 8_192

Purchase = tuple[str, str, Region]
"""Digest of the kind of pods; fleet; region."""


class _Kinds:
    """The digest of each pod's kind: namespace and spec; replicas share one spec."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[PodSpec, str]] = {}

    def of(self, namespace: str, spec: PodSpec) -> str:
        key = namespace, id(spec)
        if key not in self._known:
            self._known[key] = spec, _kind_digest(namespace, spec)
        return self._known[key][1]

    def of_class(self, waiting: WaitingClass) -> str:
        return self.of(waiting.pods[0].key.namespace, waiting.pod_class.spec)

    def of_pod(self, pod: Pod) -> str:
        return self.of(pod.key.namespace, pod.spec)


@lru_cache(maxsize=_DIGESTS_MAX)
def _kind_digest(namespace: str, spec: PodSpec) -> str:
    """Kept from cycle to cycle: specs change rarely, and each is long."""
    return digest_of(namespace, spec)


def judge_demand(cycle: Cycle) -> None:
    """Count what joined in vain since the last purchase, and quarantine what had its chances.

    To be asked when demand has found its places on what is there, before anything is bought.
    """
    known = cycle.snapshot.cluster.demands
    if not known:
        return
    kinds = _Kinds()
    waiting: dict[str, list[WaitingClass]] = {}
    for each in cycle.waiting:
        waiting.setdefault(kinds.of_class(each), []).append(each)
    bound = _Bound(cycle, kinds)
    for memory in known:
        after = _judged(cycle, memory, waiting.get(memory.demand, []), bound)
        if after is not None:
            cycle.demands[after.demand, after.fleet, after.region] = after
    _quarantine(cycle, waiting)


class _Bound:
    """Which kinds of pods run on which nodes; looked up where it matters only."""

    def __init__(self, cycle: Cycle, kinds: _Kinds) -> None:
        self._cycle = cycle
        self._kinds = kinds

    def any_of(self, demand: str, nodes: Iterable[Node]) -> bool:
        """Whether a pod of the kind runs on one of the nodes."""
        pods_on = self._cycle.pods_on
        return any(
            self._kinds.of_pod(pod) == demand
            for node in nodes
            for pod in pods_on.get(node.name, ())
            if not pod.daemon
        )


def _judged(
    cycle: Cycle, memory: DemandMemory, waiting: list[WaitingClass], bound: _Bound
) -> DemandMemory | None:
    """The memory after this snapshot; None when there is nothing left to remember."""
    status = cycle.statuses.get(FleetKey(name=memory.fleet, region=memory.region))
    if status is not None and status.out_of_reach:
        return memory  # nobody can tell what it is now
    if status is None or version_of(status) != memory.version:
        return None
    if not waiting:
        return _gone(cycle, memory)
    # Noted by a clock that was ahead, no node would ever have come for it.
    bought_at, judged_at = min(memory.bought_at, cycle.at), memory.judged_at
    judged_at = None if judged_at is None else min(judged_at, cycle.at)
    memory = replace(memory, gone_at=None, bought_at=bought_at, judged_at=judged_at)
    came = [n for n in status.nodes if n.created_at and n.created_at > memory.bought_at]
    if bound.any_of(memory.demand, came):
        return None
    floor = memory.judged_at or memory.bought_at
    serving = [n for n in came if n.created_at and n.created_at > floor and _serves(cycle, n)]
    refused = any(
        w.left and _should_take(cycle, w, node, status) for w in waiting for node in serving
    )
    if not refused:
        return memory
    return replace(memory, strikes=memory.strikes + 1, judged_at=cycle.at)


def _gone(cycle: Cycle, memory: DemandMemory) -> DemandMemory | None:
    """No such pod waits: what ran into trouble is remembered for a while."""
    gone_at = min(memory.gone_at or cycle.at, cycle.at)
    if not memory.strikes or cycle.at - gone_at > FORGOTTEN_AFTER:
        return None
    return replace(memory, gone_at=gone_at)


def _serves(cycle: Cycle, node: Node) -> bool:
    """Whether the node has come for good, and nobody has taken it out of service."""
    joining = is_joining(node, cycle.at, cycle.settings.instance_init_seconds)
    out = node.unschedulable or node.deleting or node.unreadable or is_draining(node)
    return not (joining or out)


def _should_take(cycle: Cycle, waiting: WaitingClass, node: Node, status: FleetStatus) -> bool:
    """Whether the node would have room for the pod had it come as it was promised.

    A node that other pods fill proves nothing; one on which nothing counts always does.
    """
    if is_empty(cycle, node):
        return True
    row = cycle.row_of[node.name]
    promised = cycle.sim.offer_of(cycle.offers[status.key].row)
    used = cycle.sim.offers[row] - cycle.sim.free[row]
    return bool((promised - used >= waiting.pod_class.requests).all())


def _quarantine(cycle: Cycle, waiting: Mapping[str, list[WaitingClass]]) -> None:
    """Every class of a kind that has had its chances, with the reason."""
    for demand, classes in waiting.items():
        found = [m for m in cycle.demands.values() if m.demand == demand and m.strikes]
        strikes = sum(memory.strikes for memory in found)
        if strikes < STRIKES_MAX:
            continue
        fleets = ", ".join(sorted({memory.fleet for memory in found}))
        why = (
            f"{counted_noun(strikes, 'time')} nodes of {fleets} joined for such pods and none of "
            "them bound: no more are asked for until the pods' spec or the fleet changes"
        )
        for each in classes:
            cycle.quarantined[each.pod_class.number] = why


def note_purchases(cycle: Cycle) -> None:
    """Remember for which kinds of pods this plan asks for nodes, and from which fleets.

    A purchase that was asked for before and came to nothing yet is the same purchase still: one
    that EC2 refuses with every cycle must not be written down with every cycle.
    """
    kinds = _Kinds()
    versions: dict[FleetKey, str] = {}
    for promise in cycle.promises:
        seats = (cycle.seats.get(row) for row in promise.rows)
        # By identity first: a fleet's seats share one key, and hashing it takes longer.
        keys = {id(s.key): s.key for s in seats if s is not None and not s.launching}
        for key in keys.values():
            demand = kinds.of_class(promise.waiting)
            purchase = (demand, key.name, key.region)
            if purchase not in cycle.demands:
                if key not in versions:
                    versions[key] = version_of(cycle.statuses[key])
                cycle.demands[purchase] = DemandMemory(
                    demand=demand,
                    fleet=key.name,
                    region=key.region,
                    bought_at=cycle.at,
                    version=versions[key],
                )

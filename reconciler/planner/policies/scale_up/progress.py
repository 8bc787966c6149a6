"""Demand without progress: nodes join for it and its pods do not bind (docs/failures.md).

The planner asks for a node that should take a pod by all that is known about its fleet. If that is
wrong (a label that the image does not set, a taint that somebody adds), the node joins, does not
take the pod, and the next plan would ask for another. After two attempts the kind of pods waits
until its spec or the fleet changes, or until one of its pods runs on such a node after all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from reconciler.model.cluster import Node, PodSpec
from reconciler.model.ids import FleetKey, Region
from reconciler.model.interning import InternTable, References, released_with
from reconciler.model.saved_state import SavedDemandState
from reconciler.model.text import counted_noun, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.digests import digest_of
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.version import has_changed, to_note, version_of
from reconciler.planner.placement.fill import tightness
from reconciler.planner.placement.kinds import ZONE_KEYS
from reconciler.planner.placement.simulation import ZONE_ASSUMED
from reconciler.planner.policies.scale_up.joined_for_pods import (
    bind_until,
    has_zones,
    is_closed,
    serves,
    should_take,
)
from reconciler.planner.policies.scale_up.place import fill_class
from reconciler.planner.policies.scale_up.places_taken import FilledNode, note_places_taken
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.view import ClusterView

STRIKES_MAX = 2
"""After this many purchases to whose nodes none of the pods bound, no more are made."""
ZONE_TRIES_MAX = 6
"""The same if the pods need a zone that EC2 chooses among several: of three equally likely zones
one of six nodes is in the right one nine times out of ten."""
FORGOTTEN_AFTER = timedelta(hours=1)
"""If quarantined pods are gone and return within this time, they are still quarantined."""

_DIGESTS_MAX = 8_192

Purchase = tuple[str, str, Region]
"""Digest of the kind of pods; fleet; region."""


_DIGESTS: InternTable[tuple[str, int], tuple[References, str]] = InternTable(_DIGESTS_MAX)
"""By namespace and the `id` of a spec; kept from cycle to cycle, as specs are long."""


def _demand_of_class(waiting: WaitingClass) -> str:
    return _demand_of(waiting.pods[0].key.namespace, waiting.pod_class.spec)


def _demand_of(namespace: str, spec: PodSpec) -> str:
    """Return the digest of a pod's namespace and spec, which replicas share."""
    key = namespace, id(spec)
    known = _DIGESTS.get(key)
    if known is None:
        held = released_with(_DIGESTS, key, spec)
        known = _DIGESTS.put(key, (held, digest_of(namespace, spec)))
    return known[1]


def judge_demand(builder: PlanBuilder) -> None:
    """Count purchases whose nodes joined without any of the pods binding; quarantine after two.

    To be called when demand has its places on existing rows, before anything is bought.
    """
    view = builder.view
    known = view.snapshot.cluster.demands
    if not known:
        return
    waiting: dict[str, list[WaitingClass]] = {}
    for waiting_class in builder.waiting:
        waiting.setdefault(_demand_of_class(waiting_class), []).append(waiting_class)
    bound = _Bound(view)
    of_kind: dict[str, list[SavedDemandState]] = {}
    for state in known:
        of_kind.setdefault(state.demand, []).append(state)
    for demand, states in of_kind.items():
        for after in _states_after(builder, states, waiting.get(demand, []), bound):
            builder.purchases.remembered[after.demand, after.fleet, after.region] = after
    _quarantine(builder, waiting)


def reserve_zone_attempts(builder: PlanBuilder) -> None:
    """Reserve launching nodes of a still unknown zone for pods that need one particular zone.

    They were bought for these pods. The zone of such a node is known once it has joined; until then
    no other one is bought.
    """
    fleets: dict[str, set[FleetKey]] = {}
    for state in builder.view.snapshot.cluster.demands:
        key = FleetKey(name=state.fleet, region=state.region)
        fleets.setdefault(state.demand, set()).add(key)
    launching = {
        row: planned.key for row, planned in builder.planned_nodes.items() if planned.launching
    }
    if not (fleets and launching):
        return
    order = tightness(builder.sim)
    for waiting in builder.waiting:
        if waiting.left and needs_a_zone(builder, waiting):
            bought_from = fleets.get(_demand_of_class(waiting), set())
            among = np.zeros(builder.sim.rows, dtype=np.bool_)
            among[[row for row, key in launching.items() if key in bought_from]] = True
            fill_class(builder, waiting, among, order, ZONE_ASSUMED)


def needs_a_zone(builder: PlanBuilder, waiting: WaitingClass) -> bool:
    """Return whether rules about other pods bind the class to zones."""
    obeyed = builder.sim.links(waiting.pod_class).obeyed()
    return any(counter.topology.key in ZONE_KEYS for counter in obeyed)


class _Bound:
    """Which kinds of pods run on which nodes; looked up only if it matters."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def any_of(self, demand: str, nodes: Iterable[Node]) -> bool:
        """Return whether a pod of the kind runs on one of the nodes."""
        pods_on = self._view.pods_on
        return any(
            _demand_of(pod.key.namespace, pod.spec) == demand
            for node in nodes
            for pod in pods_on.get(node.name, ())
            if not pod.daemon
        )


def _states_after(
    builder: PlanBuilder,
    states: Sequence[SavedDemandState],
    waiting: list[WaitingClass],
    bound: _Bound,
) -> list[SavedDemandState]:
    """Return what is still to be remembered about one kind of pods after this snapshot.

    Fleets that were asked in one plan, such as for two zones, are one attempt, which fails once. If
    one of the fleets changes, all attempts so far are forgotten.
    """
    view = builder.view
    unchanged = [_with_version(view, m) for m in states if not _has_changed(view, m)]
    if len(unchanged) < len(states):
        unchanged = [replace(m, strikes=0, judged_at=view.at) for m in unchanged]
    states = [m for m in unchanged if _status_of(view, m) is not None]
    reachable = [m for m in states if not _is_out_of_reach(view, m)]
    unknown = [m for m in states if _is_out_of_reach(view, m)]
    if not waiting:
        gone = (_without_pending(view, state) for state in reachable)
        return [*unknown, *(state for state in gone if state is not None)]
    current = [_dated(view, state) for state in reachable]
    current = [m for m in current if not bound.any_of(m.demand, _came_for(view, m))]
    return [*unknown, *_with_strike(builder, current, waiting)]


def _with_strike(
    builder: PlanBuilder, states: Sequence[SavedDemandState], waiting: list[WaitingClass]
) -> list[SavedDemandState]:
    """Return the states, with one more strike if the nodes of the last purchase refuse the pods."""
    view = builder.view
    floor = max((m.judged_at for m in states if m.judged_at), default=None)
    found = {m: _distinguished(builder, m, floor, waiting) for m in states}
    refusing = {m: nodes for m, (nodes, _) in found.items()}
    taken = [filled_node for _, others in found.values() for filled_node in others]
    if taken:
        note_places_taken(builder, waiting, taken, min(m.bought_at for m in states))
    nodes = [node for of_one in refusing.values() for node in of_one]
    if not nodes:
        return list(states)
    # Rules between pods are certain: kube-scheduler binds none where its zone is closed to all.
    open_to_some = (n for n in nodes if not is_closed(builder, waiting, n))
    wait = max((bind_until(view, node) for node in open_to_some), default=view.at)
    if view.at < wait:
        _wait_for_binding(builder, waiting, refusing, wait)
        return list(states)
    strikes = max(m.strikes for m in states) + 1
    return [
        replace(m, strikes=strikes if refusing[m] else m.strikes, judged_at=view.at) for m in states
    ]


def _wait_for_binding(
    builder: PlanBuilder,
    waiting: Iterable[WaitingClass],
    refusing: Mapping[SavedDemandState, Sequence[Node]],
    until: datetime,
) -> None:
    """Ask for no more nodes until kube-scheduler has had its time with those that just joined.

    These nodes stay until then.
    """
    fleets = ", ".join(sorted({state.fleet for state, nodes in refusing.items() if nodes}))
    why = (
        f"nodes of {fleets} have just turned Ready for such pods: kube-scheduler has until "
        f"{rfc3339(until)} to bind them before more are asked for"
    )
    for waiting_class in waiting:
        builder.purchases.awaiting_bind[waiting_class.pod_class.number] = why
    nodes = (node for of_one in refusing.values() for node in of_one)
    builder.purchases.awaiting_pods.update((node.name, until) for node in nodes)


def _status_of(view: ClusterView, state: SavedDemandState) -> FleetStatus | None:
    return view.statuses.get(FleetKey(name=state.fleet, region=state.region))


def _is_out_of_reach(view: ClusterView, state: SavedDemandState) -> bool:
    """Return whether the fleet's present state is unknown, because EC2 did not answer about it."""
    status = _status_of(view, state)
    return status is not None and status.out_of_reach


def _has_changed(view: ClusterView, state: SavedDemandState) -> bool:
    """Return whether the fleet now launches different nodes than when they were asked for."""
    status = _status_of(view, state)
    if status is None or status.out_of_reach:
        return False
    return has_changed(version_of(status), state.version)


def _with_version(view: ClusterView, state: SavedDemandState) -> SavedDemandState:
    """Return the state of an unchanged fleet, with its present version."""
    status = _status_of(view, state)
    if status is None or status.out_of_reach:
        return state
    return replace(state, version=to_note(version_of(status), state.version))


def _dated(view: ClusterView, state: SavedDemandState) -> SavedDemandState:
    """Return the state of pending pods without times in the future.

    If a clock that was ahead had noted them, no node would ever seem to have come.
    """
    judged_at = None if state.judged_at is None else min(state.judged_at, view.at)
    return replace(
        state, gone_at=None, bought_at=min(state.bought_at, view.at), judged_at=judged_at
    )


def _came_for(view: ClusterView, state: SavedDemandState) -> list[Node]:
    """Return the fleet's nodes that were created since it was first asked for them."""
    status = _status_of(view, state)
    nodes = status.nodes if status is not None else ()
    return [n for n in nodes if n.created_at and n.created_at > state.bought_at]


def _distinguished(
    builder: PlanBuilder,
    state: SavedDemandState,
    floor: datetime | None,
    waiting: Sequence[WaitingClass],
) -> tuple[list[Node], list[FilledNode]]:
    """Return the last purchase's nodes that should take a pod, and those that other pods filled.

    The latter had room for one of the pods until other pods were bound.
    """
    view = builder.view
    status, left = _status_of(view, state), [w for w in waiting if w.left]
    refusing: list[Node] = []
    taken: list[FilledNode] = []
    if status is None or not left:
        return refusing, taken
    allocatable = builder.sim.allocatable_of(view.offers[status.key].row)
    fits_alone = any(bool((allocatable >= w.pod_class.requests).all()) for w in left)
    for node in _came_for(view, state):
        made = node.created_at or view.at
        if (floor is not None and made <= floor) or not serves(view, node):
            continue
        if any(should_take(builder, w, node, state) for w in left):
            refusing.append(node)
        elif fits_alone and (pods := counted(view.pods_on.get(node.name, ()))):
            taken.append(FilledNode(fleet=state.fleet, joined_at=made, pods=pods))
    return refusing, taken


def _without_pending(view: ClusterView, state: SavedDemandState) -> SavedDemandState | None:
    """Return what is remembered about failed purchases once no such pod is pending any more."""
    gone_at = min(state.gone_at or view.at, view.at)
    if not state.strikes or view.at - gone_at > FORGOTTEN_AFTER:
        return None
    return replace(state, gone_at=gone_at)


def _quarantine(builder: PlanBuilder, waiting: Mapping[str, list[WaitingClass]]) -> None:
    """Quarantine every class of a kind whose purchases failed too often, with the reason."""
    for demand, classes in waiting.items():
        saved_demand_states = [
            m for m in builder.purchases.remembered.values() if m.demand == demand and m.strikes
        ]
        strikes = max((state.strikes for state in saved_demand_states), default=0)
        hoping = any(has_zones(builder.view, state) for state in saved_demand_states) and any(
            needs_a_zone(builder, waiting_class) for waiting_class in classes
        )
        if strikes < (ZONE_TRIES_MAX if hoping else STRIKES_MAX):
            continue
        fleets = ", ".join(sorted({state.fleet for state in saved_demand_states}))
        why = (
            f"{counted_noun(strikes, 'time')} nodes of {fleets} joined for such pods and none of "
            "them bound: no more are asked for until the pods' spec or the fleet changes"
        )
        for each in classes:
            builder.purchases.quarantined[each.pod_class.number] = why


def note_purchases(builder: PlanBuilder) -> None:
    """Remember for which kinds of pods this plan asks for nodes, and from which fleets.

    A purchase that is repeated before it has failed is the same purchase: one that EC2 refuses in
    every cycle must not be written in every cycle.
    """
    view = builder.view
    versions: dict[FleetKey, str] = {}
    planned = [
        (row, planned_node.key)
        for row, planned_node in builder.planned_nodes.items()
        if not planned_node.launching
    ]
    # By `id`: the planned nodes of a fleet share one key, and hashing it takes longer.
    keys = {id(key): key for _, key in planned}
    key_ids = {row: id(key) for row, key in planned}
    for reservation in builder.reservations:
        for key_id in dict.fromkeys(map(key_ids.get, reservation.rows)):
            if key_id is None:
                continue
            key = keys[key_id]
            demand = _demand_of_class(reservation.waiting)
            purchase = (demand, key.name, key.region)
            if purchase not in builder.purchases.remembered:
                if key not in versions:
                    versions[key] = version_of(view.statuses[key])
                builder.purchases.remembered[purchase] = SavedDemandState(
                    demand=demand,
                    fleet=key.name,
                    region=key.region,
                    bought_at=view.at,
                    version=versions[key],
                )

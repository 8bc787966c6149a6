"""Places demand on existing rows: nominated nodes, nodes, launching capacity."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.offers import offer_of, purchase_limits
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.fill import fill, tightness, without_torn
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import DEMAND, Terms
from reconciler.planner.policies.scale_up.launching import Placed, packed_again, place_all
from reconciler.planner.policies.scale_up.room_for_headroom import leaving_headroom
from reconciler.planner.reservations import WaitingClass


def place_on_nominated(builder: PlanBuilder) -> None:
    """Place pods on their nominated nodes, where they have preempted the room.

    A nomination is void if the node is no longer Ready, or leaves: it takes no pod.
    """
    one = np.ones(1, dtype=np.int64)
    for waiting in builder.waiting:
        if not waiting.nominated:
            continue
        named = {
            pod.key: row
            for pod in waiting.pods
            if pod.nominated_node_name is not None
            and (row := builder.view.row_of.get(pod.nominated_node_name)) is not None
        }
        if not named:
            continue
        admitted = builder.sim.admitted(waiting.pod_class)
        rows = {key: row for key, row in named.items() if admitted[row]}
        waiting.pods = [
            *(p for p in waiting.pods if p.key in rows),
            *(p for p in waiting.pods if p.key not in rows),
        ]
        for row in [rows[pod.key] for pod in waiting.pods[: len(rows)]]:
            builder.sim.place(waiting.pod_class, np.array([row], dtype=np.int64), one)
            builder.reserve(waiting, [row], [1])


def place_on_existing(builder: PlanBuilder) -> None:
    """Place pending pods on nodes, then on launching capacity, by priority and size.

    Soft terms choose among several nodes, as long as that leaves the same pods pending. If some are
    left, the classes with the fewest possible rows go first within a priority: capacity that was
    bought for them must not be used up by pods that fit elsewhere too. Launching nodes are packed
    again if they could hold more of them, or if headroom would find no room; room that this leaves
    is used.
    """
    view = builder.view
    planned = np.zeros(builder.sim.rows, dtype=np.bool_)
    planned[list(builder.planned_nodes)] = True
    parts = (~planned, planned)
    order = tightness(builder.sim)
    mark = builder.sim.fork()
    preferences = Preferences(builder.sim, [view.nodes[name] for name in view.row_of])
    placed = _attempt(builder, builder.waiting, parts, order, preferences)
    if any(_left(builder.waiting, placed)):
        builder.sim.revert(mark)
        choice = {w.pod_class.number: _rows_to_choose(builder, w) for w in builder.waiting}
        # Placing pods only uses room, so a class that no row could take at first is left out of
        # further attempts. A tenant may have hundreds of such classes.
        able = [w for w in builder.waiting if choice[w.pod_class.number]]
        if preferences.matter([w.pod_class for w in able]):
            placed = _cheaper(builder, placed, _attempt(builder, able, parts, order))
            builder.sim.revert(mark)
        placed = _fewest_rows_first(builder, placed, able, choice, parts, order)
        on_nodes = partial(_attempt, builder, able, parts[:1], order, preferences)
        packed = packed_again(builder, placed, mark, on_nodes)
        if packed is not placed:
            packed += _attempt(builder, able, parts, order, before=packed)
        placed = packed
    on_nodes = partial(_attempt, builder, builder.waiting, parts[:1], order, preferences)
    placed = leaving_headroom(builder, placed, mark, on_nodes)
    for waiting, taken in placed:
        _reserve(builder, waiting, taken)


def _cheaper(builder: PlanBuilder, liked: Placed, plain: Placed) -> Placed:
    """Return what was placed by soft terms, unless fewer or other pods are left without them."""
    same = _waiting_still(builder, liked) == _waiting_still(builder, plain)
    return liked if same or _left(builder.waiting, liked) < _left(builder.waiting, plain) else plain


def _waiting_still(builder: PlanBuilder, placed: Placed) -> dict[int, int]:
    """Return how many pods of each class find no place."""
    left = {id(waiting): waiting.left for waiting in builder.waiting}
    for waiting, taken in placed:
        left[id(waiting)] -= _total(taken)
    return left


def _fewest_rows_first(
    builder: PlanBuilder,
    placed: Placed,
    able: Sequence[WaitingClass],
    choice: Mapping[int, int],
    parts: Sequence[BoolArray],
    order: IntArray,
) -> Placed:
    """Place the classes with the fewest rows first, if that leaves fewer pods.

    Args:
        builder: The plan so far, in whose simulation nothing is placed yet.
        placed: What was found in another order.
        able: The classes that any row could take.
        choice: How many rows could, by the class's number.
        parts: Sets of rows, in the order in which they are filled.
        order: The rows in the order in which they are filled.
    """
    before = _left(builder.waiting, placed)
    if any(choice[w.pod_class.number] for w in _unserved(builder.waiting, placed)):
        mark = builder.sim.fork()
        choosy = sorted(
            able, key=lambda w: (-w.pod_class.spec.priority, choice[w.pod_class.number])
        )
        other = _attempt(builder, choosy, parts, order)
        if _left(builder.waiting, other) < before:
            return other
        builder.sim.revert(mark)
    place_all(builder, placed)
    return placed


def _unserved(classes: Sequence[WaitingClass], placed: Placed) -> list[WaitingClass]:
    """Return the classes of which some pods are still without a place."""
    taken: dict[int, int] = {}
    for waiting, parts in placed:
        taken[id(waiting)] = taken.get(id(waiting), 0) + _total(parts)
    return [w for w in classes if w.left > taken.get(id(w), 0)]


def _total(taken: list[tuple[int, int]]) -> int:
    return sum(amount for _, amount in taken)


def _attempt(
    builder: PlanBuilder,
    classes: Sequence[WaitingClass],
    parts: Sequence[BoolArray],
    order: IntArray,
    preferences: Preferences | None = None,
    before: Placed | None = None,
) -> Placed:
    """Place the classes one after the other in the simulation; nothing is reserved yet.

    Pods that must be near others may find those only once a class after theirs has its places; a
    class that counts for its own rule joins them as well. A spread allows more in a domain once the
    others have some. So what is left of such classes is tried again as long as some are placed.
    What was placed before is not placed again.
    """
    placed: Placed = []
    left = _waiting_still(builder, before or [])
    asked = list(classes)
    for _ in range(CHAIN_MAX):
        found = 0
        for waiting in asked:
            for among in parts:
                count = left[id(waiting)]
                if count and among.any():
                    ask = (waiting.pod_class, count, among, order)
                    taken = preferences.fill(*ask) if preferences else fill(builder.sim, *ask)
                    if taken:
                        placed.append((waiting, taken))
                        left[id(waiting)] -= _total(taken)
                        found += _total(taken)
        asked = [w for w in asked if left[id(w)] and _looks_at_others(builder, w)]
        if not (asked and found):
            break
    return placed


def _looks_at_others(builder: PlanBuilder, waiting: WaitingClass) -> bool:
    """Return whether places of other classes may make one available for its pods."""
    links = builder.sim.links(waiting.pod_class)
    return bool(links.spread or links.affinity)


def _rows_to_choose(builder: PlanBuilder, waiting: WaitingClass) -> int:
    """Return how many rows could take a pod of the class, ignoring rules between pods."""
    return int(np.count_nonzero(builder.sim.room_of_its_own(waiting.pod_class)))


def _left(classes: Sequence[WaitingClass], placed: Placed) -> list[int]:
    """Return how many pods are left, by priority, highest first."""
    left: dict[int, int] = {}
    for waiting in classes:
        priority = waiting.pod_class.spec.priority
        left[priority] = left.get(priority, 0) + waiting.left
    for waiting, taken in placed:
        left[waiting.pod_class.spec.priority] -= _total(taken)
    return [left[priority] for priority in sorted(left, reverse=True)]


def fill_class(
    builder: PlanBuilder,
    waiting: WaitingClass,
    among: BoolArray,
    order: IntArray,
    terms: Terms = DEMAND,
) -> None:
    """Reserve places for as many of the class's pods as rows of `among` take."""
    if waiting.left and among.any():
        taken = fill(builder.sim, waiting.pod_class, waiting.left, among, order, terms)
        _reserve(builder, waiting, taken)


def fill_untorn(
    builder: PlanBuilder, waiting: WaitingClass, among: BoolArray, order: IntArray
) -> None:
    """Do what `fill_class` does, without tearing a group for which a new node has more room."""
    elsewhere = partial(_most_on_new_node, builder, waiting)
    rows = without_torn(builder.sim, waiting.pod_class, waiting.left, among, elsewhere)
    fill_class(builder, waiting, rows, order)


def _most_on_new_node(builder: PlanBuilder, waiting: WaitingClass) -> int:
    """Return how many pods of the class the largest node takes that may be bought for it."""
    fleets = [
        status
        for status in builder.view.inventory.fleets
        if status.settings.sector in waiting.sectors and not status.unavailable
    ]
    limits = {s: purchase_limits(builder, s) for s in sorted(waiting.sectors)}
    priced = [(limits[s.settings.sector], offer_of(builder, s)) for s in fleets]
    offers = [offer for left, offer in priced if left.allows(offer.node.nano_usd_per_hour)]
    table = OfferTable(builder.sim, offers)
    slots = table.slots_uninflated(waiting.pod_class)[table.feasible(waiting.pod_class)]
    return int(slots.max(initial=0))


def _reserve(builder: PlanBuilder, waiting: WaitingClass, taken: list[tuple[int, int]]) -> None:
    builder.reserve(waiting, [row for row, _ in taken], [amount for _, amount in taken])

"""Packs pods on launching capacity so that what was bought for headroom holds it.

First fit spreads pods over all launching nodes, including the one that was bought for headroom.
Without this, plan after plan would buy another until the first nodes have joined.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.headroom.demand import largest_first, may_hold_headroom, pieces_asked_for
from reconciler.planner.headroom.pieces import HeadroomPieces
from reconciler.planner.placement.arrays import BoolArray
from reconciler.planner.placement.fill import fill, tightness
from reconciler.planner.policies.scale_up.launching import (
    BySectors,
    Launching,
    Placed,
    Wanting,
    as_bought,
    coming_rows,
    counts_of,
    may_be_searched,
    may_hold,
    on_all,
    place_all,
)
from reconciler.planner.reservations import Reservation, WaitingClass


def leaving_headroom(
    builder: PlanBuilder, placed: Placed, mark: tuple[int, int], on_nodes: Callable[[], Placed]
) -> Placed:
    """Return what was placed, or other places for all these pods that leave more headroom free.

    Args:
        builder: The plan; what is returned is in its simulation.
        placed: Pods on nodes and on launching capacity, in the simulation. Other pending pods do
            not matter: they are placed or bought for afterwards.
        mark: The state of the simulation before any of that was placed.
        on_nodes: Places pods on nodes only, in the simulation.
    """
    launching = coming_rows(builder) if builder.view.settings.headroom else {}
    if not (launching and placed and may_be_searched(builder)):
        return placed
    pieces = pieces_asked_for(builder, [*builder.reservations, *_as_reserved(placed)])
    missing = _missing(builder, pieces)
    if not missing:
        return placed
    builder.sim.revert(mark)
    other = on_nodes()
    wanting = _moved(builder, placed, other)
    counts = counts_of(placed)
    for found in _packings(builder, wanting, launching, pieces):
        before = builder.sim.fork()
        place_all(builder, found)
        if counts_of(other + found) >= counts and _missing(builder, pieces) < missing:
            return other + found
        builder.sim.revert(before)
    builder.sim.revert(mark)
    place_all(builder, placed)
    return placed


def _moved(builder: PlanBuilder, placed: Placed, on_nodes: Placed) -> BySectors:
    """Return the pods of `placed` that have no place on nodes, by the sectors that serve them."""
    left = counts_of(placed) - counts_of(on_nodes)
    return _by_sectors((w, left[id(w)]) for w in builder.waiting if left[id(w)])


def _by_sectors(wanting: Iterable[tuple[WaitingClass, int]]) -> BySectors:
    found: dict[tuple[str, ...], Wanting] = {}
    for waiting, count in wanting:
        found.setdefault(waiting.sectors, []).append((waiting, count))
    return found


def _packings(
    builder: PlanBuilder,
    wanting: BySectors,
    launching: Launching,
    pieces: Sequence[HeadroomPieces],
) -> Iterator[Placed]:
    """Yield places for these pods on launching nodes: next to the headroom, or as bought.

    At last first fit around the headroom: pods may have used the room of another sector's nodes.
    Nothing if these nodes are too full for one more piece.
    """
    pods = [sector for of_sectors in wanting.values() for sector in of_sectors]
    kept = _as_demand(builder, launching, pieces)
    one_more = [_by_sectors([*pods, (waiting, 1)]) for waiting, _ in kept]
    if kept and not any(may_hold(builder, launching, each) for each in one_more):
        return
    own = {waiting.pod_class.number for waiting, _ in pods}
    together = _by_sectors([*pods, *kept])
    apart = not own & {waiting.pod_class.number for waiting, _ in kept}
    if kept and apart and may_hold(builder, launching, together):
        packed, _ = on_all(builder, together, launching)
        if packed is not None:
            yield [each for each in packed.placed if each[0].pod_class.number in own]
    packed = as_bought(builder, wanting, launching)
    if packed is not None and not any(packed.outcome.left):
        yield packed.placed
    yield _around(builder, pods, launching, kept)


def _around(builder: PlanBuilder, pods: Wanting, launching: Launching, kept: Wanting) -> Placed:
    """Return where these pods go on launching nodes if the pieces of headroom are there first."""
    sim, mark = builder.sim, builder.sim.fork()
    coming = np.zeros(sim.rows, dtype=np.bool_)
    coming[[row for rows in launching.values() for row in rows]] = True
    for waiting, count in kept:
        fill(sim, waiting.pod_class, count, coming & may_hold_headroom(builder), tightness(sim))
    found: Placed = []
    numbers = {id(waiting): number for number, waiting in enumerate(builder.waiting)}
    for waiting, count in sorted(pods, key=lambda each: numbers[id(each[0])]):
        found.append((waiting, fill(sim, waiting.pod_class, count, coming, tightness(sim))))
    sim.revert(mark)
    return found


def _as_demand(
    builder: PlanBuilder, launching: Launching, pieces: Sequence[HeadroomPieces]
) -> Wanting:
    """Return the pieces that fit on no joined node, as pending pods."""
    joined = may_hold_headroom(builder)
    joined[[row for rows in launching.values() for row in rows]] = False
    found: dict[int, tuple[WaitingClass, int]] = {}
    for each, count in _unplaced(builder, pieces, joined):
        pod_class = builder.view.table.of(each.pod, bound=False)
        waiting = WaitingClass(pod_class=pod_class, sectors=(each.sector,), pods=[])
        before = found.get(pod_class.number, (waiting, 0))[1]
        if count:
            found[pod_class.number] = waiting, before + count
    return list(found.values())


def _missing(builder: PlanBuilder, pieces: Sequence[HeadroomPieces]) -> int:
    """Return how many pieces would have to be bought, with pods as placed now."""
    return sum(count for _, count in _unplaced(builder, pieces, may_hold_headroom(builder)))


def _unplaced(
    builder: PlanBuilder, pieces: Sequence[HeadroomPieces], among: BoolArray
) -> list[tuple[HeadroomPieces, int]]:
    """Return how many of each item's pieces fit on none of these rows; nothing is changed."""
    sim, found = builder.sim, []
    mark = sim.fork()
    for each in largest_first(pieces):
        pod_class = builder.view.table.of(each.pod, bound=False)
        taken = fill(sim, pod_class, each.count, among, tightness(sim))
        found.append((each, each.count - sum(amount for _, amount in taken)))
    sim.revert(mark)
    return found


def _as_reserved(placed: Placed) -> Iterator[Reservation]:
    """Yield the reservations that `placed` will become."""
    done: Counter[int] = Counter()
    for waiting, taken in placed:
        rows, amounts = [row for row, _ in taken], [amount for _, amount in taken]
        first = waiting.done + done[id(waiting)]
        done[id(waiting)] += sum(amounts)
        pods = waiting.pods[first : first + sum(amounts)]
        yield Reservation(waiting=waiting, pods=pods, rows=rows, amounts=amounts)

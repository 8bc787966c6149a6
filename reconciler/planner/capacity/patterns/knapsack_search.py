"""What a node may hold that is worth more than it costs: all offers searched side by side.

Item by item, the largest first, every offer's partly filled nodes are extended by every amount
that fits. A partly filled node stays while what it may still become is worth more than the goal;
of each offer the most promising stay. What is dropped is remembered by its upper bound, so that a
search of any width proves how much a node can hold at most.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.patterns.knapsack import Knapsacks, RelaxedKnapsacks
from reconciler.planner.placement.arrays import FloatArray, IntArray

PATTERNS_PER_OFFER = 3
WIDTH_LEAST = 10
TOLERANCE = 1e-6
_MIXES = (0.0, 0.15, 0.35, 0.5, 0.65, 0.85, 1.0)
"""Shares of CPU in mixes of CPU and memory, by which the free room of a node is judged."""
_LITTLE = 1e-9
"""As a share of a node: an item that takes less of a mix is not judged by it."""
_ANY = 1e30
NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class FillResult:
    """What a search found."""

    offers: IntArray
    """(patterns,)."""
    amounts: IntArray
    """(patterns, items)."""
    most: FloatArray
    """(offers,): an upper bound on the worth of one node, found or not."""
    levels: int
    tried: int
    """Amounts tried at all levels: the effort of the search."""


def fill(
    knapsacks: Knapsacks,
    worth: FloatArray,
    costs: FloatArray,
    *,
    margin: float,
    width: int,
    among: IntArray | None = None,
    cells: int | None = None,
) -> FillResult:
    """Return the patterns worth most per offer, and per item the best that holds it.

    Args:
        knapsacks: The offers.
        worth: (items,) of a pod.
        costs: (offers,) that a pattern should be worth more than.
        margin: The relative gain that is looked for: smaller gains may be missed.
        width: How many partly filled nodes stay per offer.
        among: The offers to search; None for all.
        cells: The most partly filled nodes at all levels together, if the width can be reduced.
    """
    costs = np.maximum(costs, 1).astype(np.float64)
    goals = costs * (1 + margin)
    relaxed = knapsacks.relax(worth)
    most = relaxed.bound.copy()
    active = (relaxed.bound > goals).nonzero()[0]
    if among is not None:
        active = np.intersect1d(active, among)
    if not len(active):
        nothing = np.zeros((0, knapsacks.items), dtype=np.int64)
        return FillResult(offers=active, amounts=nothing, most=most, levels=0, tried=0)
    layout = _Layout(knapsacks, relaxed, worth, goals, active)
    if cells is not None:
        width = min(width, max(WIDTH_LEAST, cells // max(len(active) * layout.depth, 1)))
    beam = _Beam(layout, width)
    for level in range(layout.depth):
        if not beam.extend(level):
            break
    most[active] = np.minimum(most[active], np.maximum(goals[active], beam.most()))
    chosen = beam.best(costs[active])
    return FillResult(
        offers=active[beam.node[chosen]],
        amounts=beam.patterns(chosen),
        most=most,
        levels=layout.depth,
        tried=beam.tried,
    )


class _Layout:
    """What is the same for all partly filled nodes of an offer, by level of the search."""

    def __init__(
        self,
        knapsacks: Knapsacks,
        relaxed: RelaxedKnapsacks,
        worth: FloatArray,
        goals: FloatArray,
        active: IntArray,
    ) -> None:
        self.goals = goals[active]
        per_unit = 1 / knapsacks.scale[active].T
        rates = relaxed.rates[active].T * per_unit
        surplus, most = relaxed.surplus[active], knapsacks.most[active]
        usable = (most > 0) & (worth > 0)
        settled = usable & (np.abs(surplus) > (relaxed.bound[active] - self.goals)[:, None])
        self.settled: IntArray = np.where(settled & (surplus > 0), most, 0)
        """(offers, items): amounts from which one pod more or less is below the goal."""
        open_items = usable & ~settled
        counts = open_items.sum(axis=1)
        self.depth = int(counts.max())
        size = knapsacks.share[active].max(axis=2)
        ranked = np.argsort(np.where(open_items, -size, np.inf), axis=1, kind="stable")
        self.order: IntArray = ranked[:, : self.depth]
        """(offers, levels): the item of each level."""
        live = np.arange(self.depth) < counts[:, None]
        line = np.arange(len(active))[:, None]
        self.worth: FloatArray = np.where(live, worth[self.order], 0)
        self.most: IntArray = np.where(live, most[line, self.order], 0)
        self.needs: IntArray = knapsacks.needs[self.order, active[:, None]].transpose(1, 2, 0)
        """(levels, resources, offers)."""
        used = (knapsacks.needs[:, active].swapaxes(0, 1) * self.settled[:, :, None]).sum(axis=1)
        self.room: IntArray = (knapsacks.room[active] - used).T
        """(resources, offers)."""
        self.value: FloatArray = self.settled @ worth
        gain = np.where(live, np.maximum(surplus[line, self.order], 0), 0) * self.most
        later = _padded(gain[:, ::-1].cumsum(axis=1)[:, ::-1]).T
        best_rate = self._judge_by_mixes(knapsacks.share[active][line, self.order])
        self.judging: FloatArray = np.concatenate(
            [
                np.broadcast_to(rates, (self.depth + 1, *rates.shape)),
                np.broadcast_to(per_unit, (self.depth + 1, *per_unit.shape)),
                best_rate,
                later[:, None],
            ],
            axis=1,
        )
        """(levels + 1, ..., offers), by which the items from a level on are judged: worth per
        unit of each resource, a unit of each resource as a share of a node, the best worth
        per share of each mix, and the surplus of these items."""

    def _judge_by_mixes(self, share: FloatArray) -> FloatArray:
        """Return (levels + 1, mixes, offers) the best worth per mixed share of later items."""
        resources = share.shape[2]
        mixes = np.eye(resources)
        if resources > 1:
            cpu = np.array(_MIXES)
            both = np.zeros((len(cpu), resources))
            both[:, 0], both[:, 1] = cpu, 1 - cpu
            mixes = np.vstack([both, mixes[2:]])
        self.mixes: FloatArray = mixes
        taken = share @ mixes.T
        rate = self.worth[:, :, None] / np.maximum(taken, _LITTLE)
        rate = np.where(taken > _LITTLE, rate, _ANY)
        rate[self.most == 0] = 0
        best = _padded(np.maximum.accumulate(rate[:, ::-1], axis=1)[:, ::-1])
        return best.transpose(1, 2, 0)


def _padded(levels: FloatArray) -> FloatArray:
    """Return the levels with one level of zeros appended."""
    return np.concatenate([levels, np.zeros((len(levels), 1, *levels.shape[2:]))], axis=1)


class _Beam:
    """The partly filled nodes of all offers, as parallel arrays."""

    def __init__(self, layout: _Layout, width: int) -> None:
        self._layout = layout
        self._width = width
        self.node: IntArray = np.asarray((layout.room >= 0).all(axis=0)).nonzero()[0]
        """The active offer of each."""
        self._room = layout.room[:, self.node]
        self._value = layout.value[self.node]
        self._taken = np.zeros((len(self.node), layout.depth), dtype=np.int32)
        self._dropped = np.zeros(len(layout.goals))
        self.tried = 0

    def extend(self, level: int) -> bool:
        """Try every amount of the level's item that fits; return whether any node is left."""
        layout = self._layout
        needs = layout.needs[level].take(self.node, axis=1)
        choices = self._fits(needs, level) + 1
        parent = np.arange(len(choices)).repeat(choices)
        self.tried += len(parent)
        amount = np.arange(len(parent)) - (choices.cumsum() - choices)[parent]
        node = self.node[parent]
        room = self._room.take(parent, axis=1) - needs.take(parent, axis=1) * amount
        value = self._value[parent] + layout.worth[node, level] * amount
        promise = value + self._upper_bound_from(node, room, level + 1)
        kept = self._most_promising(node, promise)
        self.node, self._value = node[kept], value[kept]
        self._room = room.take(kept, axis=1)
        self._taken = self._taken.take(parent[kept], axis=0)
        self._taken[:, level] = amount[kept]
        return bool(len(kept))

    def _fits(self, needs: IntArray, level: int) -> IntArray:
        """Return how many of the level's item each node takes."""
        fits = np.full(needs.shape, NO_LIMIT)
        np.floor_divide(self._room, needs, out=fits, where=needs > 0)
        most = self._layout.most[self.node, level]
        return np.asarray(np.minimum(most, fits.min(axis=0, initial=NO_LIMIT)))

    def _upper_bound_from(self, node: IntArray, room: IntArray, level: int) -> FloatArray:
        """Return an upper bound on what the items from this level on add."""
        resources = len(room)
        judging = self._layout.judging[level].take(node, axis=1)
        at_rates = (room * judging[:resources]).sum(axis=0) + judging[-1]
        mixed = self._layout.mixes @ (room * judging[resources : 2 * resources])
        np.maximum(mixed, _LITTLE, out=mixed)
        mixed *= judging[2 * resources : -1]
        return np.asarray(np.minimum(at_rates, mixed.min(axis=0)))

    def _most_promising(self, node: IntArray, promise: FloatArray) -> IntArray:
        good = (promise > self._layout.goals[node]).nonzero()[0]
        if len(good) <= self._width:
            return good
        ranked = good[np.lexsort((-promise[good], node[good]))]
        of = node[ranked]
        place = np.arange(len(of)) - np.searchsorted(of, of)
        dropped = ranked[place >= self._width]
        np.maximum.at(self._dropped, node[dropped], promise[dropped])
        return np.sort(ranked[place < self._width])

    def most(self) -> FloatArray:
        """Return (active offers,) the most that was found or may have been dropped."""
        found = self._dropped.copy()
        np.maximum.at(found, self.node, self._value)
        return found

    def best(self, costs: FloatArray) -> IntArray:
        """Return the nodes per offer that gain most, and the best node for every item."""
        rate = self._value / costs[self.node]
        ranked = np.lexsort((-rate, self.node))
        of = self.node[ranked]
        place = np.arange(len(of)) - np.searchsorted(of, of)
        gainful = ranked[(place < PATTERNS_PER_OFFER) & (rate[ranked] > 1 + TOLERANCE)]
        by_rate = np.argsort(-rate, kind="stable")
        held = self.patterns(by_rate) > 0
        for_items = by_rate[held.argmax(axis=0)[held.any(axis=0)]] if len(by_rate) else by_rate
        return np.union1d(gainful, for_items).astype(np.int64)

    def patterns(self, chosen: IntArray) -> IntArray:
        """Return (chosen, items) the amounts, including those that were settled from the start."""
        node = self.node[chosen]
        amounts = self._layout.settled[node].copy()
        line = np.arange(len(chosen))[:, None]
        # padding levels name settled items again, and take nothing
        np.add.at(amounts, (line, self._layout.order[node]), self._taken[chosen])
        return amounts

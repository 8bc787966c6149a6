"""Patterns near known ones: one or two pods of a pattern give way to one to six better ones.

A local search for when a search of whole nodes takes too long: patterns worth more than they cost
are close to those that the master program uses already. All known patterns less up to two pods are
tried on all offers, and what is worth most in the free room is looked up in one table.
"""

import numpy as np

from reconciler.planner.capacity.patterns.master import Master
from reconciler.planner.capacity.patterns.pricing import Patterns, Pricer
from reconciler.planner.capacity.problem.effort import (
    SECONDS_PER_FILLING,
    SECONDS_PER_LAID,
    SECONDS_PER_NEARBY,
    Effort,
)
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

BASES = 200
"""How many patterns are changed: those that lose least, and"""
BASES_LAID = 6_000
"""the same, times the number of offers."""
PER_OFFER = 3
MULTIPLES = 6
"""How many pods of one item are added together."""
LINES = 512
"""How many steps of a resource the table of fillings distinguishes."""
_TOLERANCE = 1e-6


class Fillings:
    """Pods of one or two items: for any room, those worth most that fit.

    Two resources decide what fits; the caller has to check others. The last filling is empty.
    """

    def __init__(self, needs: IntArray, room: IntArray) -> None:
        """List fillings by (2, items) what a pod takes, for rooms of up to (2,)."""
        items = needs.shape[1]
        one = np.tile(np.arange(items), MULTIPLES)
        times = np.repeat(np.arange(1, MULTIPLES + 1), items)
        pairs = np.stack(np.triu_indices(items, 1))
        members = np.concatenate([[one, one], pairs], axis=1)
        amounts = np.concatenate([[times, 0 * times], np.ones_like(pairs)], axis=1)
        load = (needs[:, members] * amounts).sum(axis=1)
        possible = (load <= room[:, None]).all(axis=0)
        nothing = np.zeros((2, 1), dtype=np.int64)
        load = np.append(load[:, possible], nothing, axis=1)
        self.items: IntArray = np.append(members[:, possible], nothing, axis=1)
        """(2, fillings): the same twice where there is only one."""
        self.amounts: IntArray = np.append(amounts[:, possible], nothing, axis=1)
        """(2, fillings) pods."""
        self._lines = [_lines(loads) for loads in load]
        self._cell = np.ravel_multi_index(
            [np.searchsorted(lines, loads) for lines, loads in zip(self._lines, load, strict=True)],
            self._shape,
        )
        self.value: FloatArray = np.zeros(self.items.shape[1])
        self._best = np.zeros(self._shape, dtype=np.int32)
        self._ranked = np.zeros(1, dtype=np.int64)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self._lines[0]), len(self._lines[1])

    def rank(self, worth: FloatArray, counts: IntArray) -> None:
        """Order fillings by (items,) the worth of a pod; drop those with more pods than wait."""
        self.value = (worth[self.items] * self.amounts).sum(axis=0)
        usable = (self.amounts <= counts[self.items]).all(axis=0) & (self.value > 0)
        ranked = usable.nonzero()[0]
        ranked = ranked[np.argsort(self.value[ranked], kind="stable")]
        cells = np.zeros(self._best.size, dtype=np.int32)
        # of those in one cell the last, which is worth most, stays
        cells[self._cell[ranked]] = np.arange(1, len(ranked) + 1, dtype=np.int32)
        self._best = cells.reshape(self._shape)
        np.maximum.accumulate(self._best, axis=0, out=self._best)
        np.maximum.accumulate(self._best, axis=1, out=self._best)
        self._ranked = np.append(len(self.value) - 1, ranked)

    def best(self, room: IntArray) -> IntArray:
        """Return for each of (2, rooms) the filling worth most that fits; it may be empty."""
        row, column = (
            np.searchsorted(lines, left, side="right") - 1
            for lines, left in zip(self._lines, room, strict=True)
        )
        return np.asarray(self._ranked[self._best[row, column]])

    def added(self, amounts: IntArray, fillings: IntArray) -> IntArray:
        """Return (patterns, items) amounts with one filling added to each."""
        both = amounts.copy()
        line = np.arange(len(fillings))
        np.add.at(both, (line, self.items[:, fillings]), self.amounts[:, fillings])
        return both


def _lines(loads: IntArray) -> IntArray:
    """Return some of the loads, ascending, with the most frequent ones.

    Others count as the next one.
    """
    lines, often = np.unique(loads, return_counts=True)
    if len(lines) <= LINES:
        return lines
    frequent = lines[np.argsort(-often, kind="stable")[: LINES // 2]]
    spread = lines[:: -(-len(lines) // (LINES // 2))]
    return np.union1d(frequent, np.append(spread, lines[-1]))


class NeighbourPricer:
    """Finds patterns next to those of a master; asks another pricer if there are none."""

    def __init__(self, problem: Problem, master: Master, beyond: Pricer) -> None:
        self._master, self._beyond = master, beyond
        self._close = True
        self._needs, self._room = problem.with_caps()
        self._slots, self._counts = problem.slots, problem.counts
        items = len(problem.items)
        self._least: IntArray = np.zeros((2, items + 1), dtype=np.int64)
        """(2, items and none): what a pod takes; checked at the end if offers inflate it."""
        self._laid: IntArray = np.zeros((2, len(self._room)), dtype=np.int64)
        """(2, offers)."""
        for resource in range(min(2, self._room.shape[1])):
            self._least[resource, :items] = self._needs[:, :, resource].min(axis=1)
            self._laid[resource] = self._room[:, resource]
        self._fillings = Fillings(self._least[:, :items], self._laid.max(axis=1))

    def demand(self, counts: IntArray) -> None:
        """See `Pricer.demand`."""
        self._counts = counts
        self._close = True
        self._beyond.demand(counts)

    def try_harder(self) -> None:
        """See `Pricer.try_harder`: the next search goes beyond known patterns."""
        self._close = False
        self._beyond.try_harder()

    def patterns(self, worth: FloatArray, costs: FloatArray, effort: Effort) -> Patterns:
        """See `Pricer.patterns`."""
        if self._close:
            found = self._changed(worth, costs, effort)
            if len(found[0]):
                return found
        self._close = True
        return self._beyond.patterns(worth, costs, effort)

    def _changed(self, worth: FloatArray, costs: FloatArray, effort: Effort) -> Patterns:
        """Return profitable patterns near those of the master, for many offers and items."""
        fillings, offers = self._fillings, len(costs)
        fillings.rank(worth, self._counts)
        bases = self._bases(worth, costs)
        base, removed = _less_some(bases)
        load = (self._least[:, :-1] @ bases.T)[:, base] - self._least[:, removed].sum(axis=1)
        value = (bases @ worth)[base] - np.append(worth, 0)[removed].sum(axis=0)
        room = self._laid[:, None, :] - load[:, :, None]
        promising = value[:, None] > costs - fillings.value.max()
        promising &= (room[0] >= 0) & (room[1] >= 0)
        laid = np.flatnonzero(promising)
        effort.spend(SECONDS_PER_NEARBY + SECONDS_PER_FILLING * len(fillings.value))
        effort.spend(SECONDS_PER_LAID * (promising.size + len(laid)))
        at, offer = np.divmod(laid, offers)
        filling = fillings.best(room.reshape(2, -1)[:, laid])
        gain = (value[at] + fillings.value[filling]) / np.maximum(costs[offer], 1) - 1
        gainful = (gain > _TOLERANCE).nonzero()[0]
        ranked = gainful[np.argsort(-gain[gainful], kind="stable")]
        first = [
            _first_of(base[at[ranked]], 1),
            _first_of(offer[ranked], PER_OFFER),
            _first_of(fillings.items[0, filling[ranked]], 1),
        ]
        chosen = ranked[np.unique(np.concatenate(first))]
        at, offer = at[chosen], offer[chosen]
        amounts = np.column_stack([bases[base[at]], np.full(len(at), 2)])
        line = np.arange(len(at))
        np.subtract.at(amounts, (line, removed[:, at]), 1)
        return self._possible(offer, fillings.added(amounts[:, :-1], filling[chosen]))

    def _bases(self, worth: FloatArray, costs: FloatArray) -> IntArray:
        """Return (bases, items) the known patterns that lose least, and each pod alone."""
        offers, amounts = self._master.offers, self._master.amounts
        loss = 1 - amounts @ worth / np.maximum(costs[offers], 1)
        most = max(1, min(BASES, BASES_LAID // len(costs)))
        bases = np.minimum(amounts[np.argsort(loss, kind="stable")[:most]], self._counts)
        alone = np.eye(len(worth), dtype=np.int64)[(worth > 0) & (self._counts > 0)]
        return np.concatenate([bases, alone])

    def _possible(self, offers: IntArray, amounts: IntArray) -> Patterns:
        """Return the patterns that fit by all resources, filters and pending pods."""
        good = (amounts <= np.minimum(self._slots[:, offers].T, self._counts)).all(axis=1)
        load = np.einsum("pi,ipr->pr", amounts, self._needs[:, offers])
        good &= (load <= self._room[offers]).all(axis=1)
        return offers[good], amounts[good]


def _less_some(bases: IntArray) -> tuple[IntArray, IntArray]:
    """Return each of the (bases, items) as it is, without any one pod, and without any two.

    Returns:
        The base of each, and (2, results) the items of the removed pods: the number of items for
        none.
    """
    count, none = bases.shape
    row, item = bases.nonzero()
    start = np.searchsorted(row, np.arange(count + 1))
    partners = start[row + 1] - np.arange(len(row))
    one = np.repeat(np.arange(len(row)), partners)
    other = one + np.arange(len(one)) - np.repeat(np.cumsum(partners) - partners, partners)
    two = (one < other) | (bases[row[one], item[one]] > 1)
    one, other = one[two], other[two]
    base = np.concatenate([np.arange(count), row, row[one]])
    first = np.concatenate([np.full(count, none), item, item[one]])
    second = np.concatenate([np.full(count + len(row), none), item[other]])
    return base, np.stack([first, second])


def _first_of(keys: IntArray, most: int) -> IntArray:
    """Return the indices of the first `most` of every key."""
    order = np.argsort(keys, kind="stable")
    grouped = keys[order]
    place = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    return np.asarray(order[place < most])

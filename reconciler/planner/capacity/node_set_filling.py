"""Pods on a given set of nodes, by several greedy rules at once."""

import numpy as np

from reconciler.planner.capacity.problem import Packing, Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

MIXES = (0.5, 0.0, 1.0, 0.25, 0.75)
"""Shares of the first resource in a mix with the second, by each of which pods are ordered."""
RULES = 3
"""Which node takes a pod: one whose room is most like it, one left fullest, one left emptiest."""


def fill_set(problem: Problem, nodes: IntArray) -> Packing | None:
    """All pods on (offers,) so many nodes, by the first rule that succeeds."""
    bins = np.repeat(np.arange(len(nodes)), nodes)
    if not len(bins):
        return None
    rows = _Rows(problem, bins, _orders(problem))
    if not rows.fill():
        return None
    return Packing(bins=bins, amounts=rows.first())


def _orders(problem: Problem) -> IntArray:
    """(orders, pods): the item of each pod, the largest first by several measures of size."""
    typical = np.maximum(np.median(problem.vectors, axis=0), 1)
    share = problem.needs.min(axis=1) / typical
    sizes = [mix * share[:, 0] + (1 - mix) * share[:, 1] for mix in MIXES]
    sizes.append(share.max(axis=1))
    ranked = np.argsort(-np.array(sizes), axis=1, kind="stable")
    return np.array([np.repeat(items, problem.counts[items]) for items in ranked])


class _Rows:
    """The same nodes once per order of pods and rule, filled side by side."""

    def __init__(self, problem: Problem, bins: IntArray, orders: IntArray) -> None:
        needs, room = problem.with_caps()
        self._pods = np.repeat(orders, RULES, axis=0)
        self._rule = np.tile(np.arange(RULES), len(orders))
        self._needs = needs[:, bins].astype(np.float64)
        """(items, nodes, resources)."""
        self._slots = np.minimum(problem.slots, problem.counts[:, None])[:, bins]
        room = room[bins].astype(np.float64)
        self._inverse: FloatArray = 1 / np.maximum(room, 1)
        self._room = np.repeat(room[None], len(self._pods), axis=0)
        self._amounts = np.zeros((len(self._pods), len(bins), len(problem.items)), dtype=np.int64)

    def fill(self) -> bool:
        """Place pod after pod; whether some row places them all."""
        for step in range(self._pods.shape[1]):
            items = self._pods[:, step]
            needs = self._needs[items]
            line = np.arange(len(items))
            left = self._room - needs
            taken = self._amounts[line, :, items]
            fits = (left >= 0).all(axis=2) & (taken < self._slots[items])
            node = np.where(fits, self._scores(needs, left), -np.inf).argmax(axis=1)
            placed = fits[line, node]
            self._room[line, node] = left[line, node]
            self._amounts[line, node, items] += 1
            self._keep(placed)
            if not len(self._pods):
                return False
        return True

    def first(self) -> IntArray:
        """(nodes, items) pods of the first row that is left."""
        amounts: IntArray = self._amounts[0]
        return amounts

    def _scores(self, needs: FloatArray, left: FloatArray) -> FloatArray:
        """(rows, nodes): the node with the highest takes the pod."""
        share, asked = self._room * self._inverse, needs * self._inverse
        length = np.sqrt((share * share).sum(axis=2) + 1e-12)
        alike = (share * asked).sum(axis=2) / length
        after = left * self._inverse
        fullest, emptiest = -after.max(axis=2), after.min(axis=2)
        rule = self._rule[:, None]
        return np.asarray(np.where(rule == 0, alike, np.where(rule == 1, fullest, emptiest)))

    def _keep(self, placed: np.ndarray) -> None:
        if placed.all():
            return
        self._pods, self._rule = self._pods[placed], self._rule[placed]
        self._room, self._amounts = self._room[placed], self._amounts[placed]

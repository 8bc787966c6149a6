"""Places pods on a given set of nodes by several greedy rules at once."""

import numpy as np

from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

MIXES = (0.5, 0.0, 1.0, 0.25, 0.75)
"""Shares of the first resource in a mix with the second; pods are ordered by each mix."""
RULES = 3
"""Which node takes a pod: the one whose room is most like it, the one left fullest, or emptiest."""


def fill_set(problem: Problem, nodes: IntArray) -> Packing | None:
    """Return a packing of all pods on (offers,) `nodes`, by the first rule that succeeds.

    Else None.
    """
    bins = np.repeat(np.arange(len(nodes)), nodes)
    if not len(bins):
        return None
    rows = _Rows(problem, bins, _orders(problem))
    if not rows.fill():
        return None
    return Packing(bins=bins, amounts=rows.first())


def _orders(problem: Problem) -> IntArray:
    """Return (orders, pods) the item of each pod, the largest first by several measures of size."""
    typical = np.maximum(np.median(problem.vectors, axis=0), 1)
    share = problem.needs.min(axis=1) / typical
    sizes = [mix * share[:, 0] + (1 - mix) * share[:, 1] for mix in MIXES]
    sizes.append(share.max(axis=1))
    ranked = np.argsort(-np.array(sizes), axis=1, kind="stable")
    return np.array([np.repeat(items, problem.counts[items]) for items in ranked])


class _Rows:
    """The same nodes once per order of pods and rule, filled side by side.

    Arrays are (resources, rows, nodes), as summing over the first axis is much faster.
    """

    def __init__(self, problem: Problem, bins: IntArray, orders: IntArray) -> None:
        needs, room = problem.with_caps()
        self._pods = np.tile(orders, (RULES, 1))
        self._rule = np.repeat(np.arange(RULES), len(orders))
        """Ascending, also after rows were dropped."""
        self._number = np.tile(np.arange(len(orders)) * RULES, RULES) + self._rule
        """Each order's rules one after the other: the first row that succeeds is used."""
        free = room[bins].T.astype(np.float64)
        self._inverse: FloatArray = (1 / np.maximum(free, 1))[:, None]
        self._needs = np.moveaxis(needs[:, bins].astype(np.float64), 2, 0)
        self._asked = self._needs * self._inverse
        """(resources, items, nodes)."""
        self._slots = np.minimum(problem.slots, problem.counts[:, None])[:, bins]
        self._room = np.repeat(free[:, None], len(self._pods), axis=1)
        self._amounts = np.zeros((len(self._pods), len(problem.items), len(bins)), dtype=np.int64)

    def fill(self) -> bool:
        """Place pod after pod; return whether some row places them all."""
        line = np.arange(len(self._pods))
        for step in range(self._pods.shape[1]):
            items = self._pods[:, step]
            left = self._room - self._needs[:, items]
            fits = left.min(axis=0) >= 0
            fits &= self._amounts[line, items] < self._slots[items]
            scores = self._scores(self._asked[:, items], left)
            node = np.where(fits, scores, -np.inf).argmax(axis=1)
            placed = fits[line, node]
            self._room[:, line, node] = left[:, line, node]
            self._amounts[line, items, node] += 1
            if not placed.all():
                self._keep(placed)
                line = np.arange(len(self._pods))
            if not len(line):
                return False
        return True

    def first(self) -> IntArray:
        """Return (nodes, items) the pods of the first row that is left."""
        amounts: IntArray = self._amounts[self._number.argmin()].T
        return amounts

    def _scores(self, asked: FloatArray, left: FloatArray) -> FloatArray:
        """Return (rows, nodes) scores; the node with the highest takes the pod."""
        scores = np.empty(left.shape[1:])
        one, two = np.searchsorted(self._rule, (1, 2))
        share = self._room[:, :one] * self._inverse
        length = np.sqrt((share * share).sum(axis=0) + 1e-12)
        scores[:one] = (share * asked[:, :one]).sum(axis=0) / length
        after = left[:, one:] * self._inverse
        scores[one:two] = -after[:, : two - one].max(axis=0)
        scores[two:] = after[:, two - one :].min(axis=0)
        return scores

    def _keep(self, placed: np.ndarray) -> None:
        self._pods, self._rule = self._pods[placed], self._rule[placed]
        self._number, self._amounts = self._number[placed], self._amounts[placed]
        self._room = self._room[:, placed]

"""The most that one node can hold of anything, by worth: what turns duals into a proven bound."""

from collections.abc import Iterator

import numpy as np

from reconciler.planner.capacity.lp import solve
from reconciler.planner.capacity.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

EXACT_MAX = 24
"""Offers that are looked at as integer programs, the ones that limit the bound first."""
NODES_MAX = 200


def proven_bound(problem: Problem, worth: FloatArray) -> float:
    """A lower bound on the cost of covering all items, from any worth per pod (Farley, 1990).

    If no node can hold pods worth more than `r` times its price, then pods worth W in all cost at
    least W / r. Caps per node and limits per offer are left out: they only add cost.
    """
    total = float(worth @ problem.counts)
    if total <= 0:
        return 0.0
    ratios = relaxed_ratios(problem, worth)
    exact: set[int] = set()
    for _ in range(EXACT_MAX):
        worst = int(ratios.argmax())
        if worst in exact or ratios[worst] <= 1:
            break
        exact.add(worst)
        most, _ = _most(problem, worth, worst, nodes=NODES_MAX)
        ratios[worst] = min(ratios[worst], most / max(int(problem.prices[worst]), 1))
    return total / max(1.0, float(ratios.max()) * (1 + 1e-9))


def relaxed_ratios(problem: Problem, worth: FloatArray) -> FloatArray:
    """(offers,): at most how much worth an offer holds per price, pods taken as divisible."""
    most = [_most(problem, worth, offer, nodes=0)[0] for offer in range(len(problem.prices))]
    return np.array(most) / np.maximum(problem.prices, 1)


def best_patterns(
    problem: Problem, worth: FloatArray, offers: IntArray
) -> Iterator[tuple[int, IntArray]]:
    """The most valuable whole pattern of each of these offers."""
    for offer in offers.tolist():
        _, amounts = _most(problem, worth, offer, nodes=NODES_MAX)
        if amounts is not None:
            yield offer, amounts


def _most(
    problem: Problem, worth: FloatArray, offer: int, *, nodes: int
) -> tuple[float, IntArray | None]:
    """An upper bound on the worth of what the node holds, and with `nodes` the best whole pods."""
    items = ((problem.slots[:, offer] > 0) & (worth > 0)).nonzero()[0]
    if not len(items):
        return 0.0, None
    needs = problem.needs[items, offer, :].T.astype(np.float64)
    asked = np.asarray(np.any(needs, axis=1))
    scale = np.maximum(problem.vectors[offer, asked], 1).astype(np.float64)
    rows = needs[asked] / scale[:, None]
    upper = problem.vectors[offer, asked] / scale + 1e-9
    unit = float(worth[items].max())
    most = np.minimum(problem.slots[items, offer], problem.counts[items]).astype(np.float64)
    found = solve(
        -worth[items] / unit,
        rows,
        np.full(len(upper), -np.inf),
        upper,
        most=most,
        integer_nodes=nodes,
    )
    if found is None:
        return float((worth[items] * most).sum()), None
    if not nodes:
        return -found.bound * unit, None
    amounts = np.zeros(len(problem.items), dtype=np.int64)
    amounts[items] = np.round(found.x).astype(np.int64)
    return -found.bound * unit, amounts

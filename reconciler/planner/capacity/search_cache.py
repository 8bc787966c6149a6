"""A cache of purchase searches.

In a cluster at rest every plan asks the same: whether cheaper nodes could replace some of its own.
While nodes are launching, every plan asks whether they hold the pending pods. A search reads only
the numbers of its problem, so it is made once per problem.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from reconciler.model.interning import InternTable
from reconciler.planner.capacity.bounds.fair_prices import FairPrices, fair_prices
from reconciler.planner.capacity.node_sets.search import FitOnSet, on_set
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.capacity.search import SearchResult, search
from reconciler.planner.placement.arrays import IntArray

ENTRIES_MAX = 256
"""How many answers of usual size are kept, of a few kilobytes each."""
NUMBERS_PER_ENTRY = 64
"""Items plus pod places of an answer of usual size; a larger one counts as several."""
CELLS_MAX = 20_000
"""In items x offers; larger purchases are not repeated, and not cached."""
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSearch:
    """What a search found, and the fair prices that it began with; arrays are read-only."""

    fair: FairPrices
    found: SearchResult


_ANSWERS: InternTable[bytes, CachedSearch] = InternTable(ENTRIES_MAX)
_ON_SETS: InternTable[bytes, FitOnSet] = InternTable(ENTRIES_MAX)


def known_or_searched(problem: Problem, budget_seconds: float) -> CachedSearch:
    """Return the answer of `search`, computed now or for an equal problem of an earlier plan."""
    if problem.slots.size > CELLS_MAX:
        return _searched(problem, budget_seconds)
    digest = _digest(problem, budget_seconds)
    known = _ANSWERS.get(digest)
    if known is not None:
        return known
    made = _searched(problem, budget_seconds)
    return _ANSWERS.put(digest, made, weight=_weight(problem, made.found.packing))


def known_or_packed(problem: Problem, budget_seconds: float) -> FitOnSet:
    """Return the answer of `on_set` for all nodes of a problem, computed now or earlier."""
    if problem.slots.size > CELLS_MAX:
        return on_set(problem, problem.limits, Effort(budget_seconds))
    digest = _digest(problem, budget_seconds)
    known = _ON_SETS.get(digest)
    if known is not None:
        return known
    made = on_set(problem, problem.limits, Effort(budget_seconds))
    if made.packing is not None:
        _seal(made.packing)
    return _ON_SETS.put(digest, made, weight=_weight(problem, made.packing))


def forget_searches() -> None:
    """Forget all answers, so that each purchase is searched again; for benchmarks."""
    _ANSWERS.clear()
    _ON_SETS.clear()


def _weight(problem: Problem, packing: Packing | None) -> int:
    """Return the cache weight of an answer, 1 for one of usual size."""
    numbers = len(problem.items) + (0 if packing is None else len(packing.contents.pods))
    return 1 + numbers // NUMBERS_PER_ENTRY


def _searched(problem: Problem, budget_seconds: float) -> CachedSearch:
    fair = fair_prices(problem)
    answer = CachedSearch(fair=fair, found=search(problem, fair, budget_seconds))
    found = answer.found
    _seal(found.packing)
    arrays = [fair.weights, fair.items, fair.places]
    arrays += [] if found.worth is None else [found.worth]
    arrays += [] if found.divisible is None else [found.divisible.worth]
    for array in arrays:
        array.setflags(write=False)
    return answer


def _seal(packing: Packing) -> None:
    contents = packing.contents
    for array in (packing.bins, contents.nodes, contents.items, contents.pods):
        array.setflags(write=False)


def _digest(problem: Problem, budget_seconds: float) -> bytes:
    """Return a digest of all that a search reads: classes by their order, offers by numbers."""
    classes = [item.pod_class for item in problem.items]
    key = (
        budget_seconds,
        problem.inflated,
        [(c.spec.priority, c.columns.tobytes()) for c in classes],
        [(item.groups, item.rules) for item in problem.items],
        [(offer.over_subscription, offer.most) for offer in problem.offers],
    )
    arrays = (
        problem.counts,
        problem.needs if problem.inflated else problem.needs[:, 0, :],
        problem.slots,
        problem.vectors,
        problem.prices,
        problem.limits,
        problem.caps,
        problem.membership,
        np.array([c.requests for c in classes]),
        _ranks([c.number for c in classes]),
        _ranks([c.static for c in classes]),
    )
    made = blake2b(repr(key).encode(), digest_size=_DIGEST_BYTES)
    for array in arrays:
        made.update(repr(array.shape).encode())
        made.update(np.ascontiguousarray(array).tobytes())
    return made.digest()


def _ranks(numbers: list[int]) -> IntArray:
    """Return (items,) the rank of each number among the distinct ones."""
    return np.asarray(np.unique(numbers, return_inverse=True)[1])

"""A purchase that was searched before: the same answer, and only for the very same numbers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from reconciler.planner.capacity.bounds.fair_prices import fair_prices
from reconciler.planner.capacity.node_sets.search import on_set
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Item, Offer, Problem
from reconciler.planner.capacity.search import search
from reconciler.planner.capacity.search_cache import (
    CELLS_MAX,
    CachedSearch,
    forget_searches,
    known_or_packed,
    known_or_searched,
)
from tests.unit.planner.capacity.problems import random_problem

SECONDS = 0.05
PROBLEMS = 60


def of_other_priority(item: Item) -> Item:
    """The item, of pods that go before others."""
    spec = replace(item.pod_class.spec, priority=1000)
    return replace(item, pod_class=replace(item.pod_class, spec=spec))


def with_first_item(problem: Problem, item: Item) -> Problem:
    """The problem with another first item."""
    return replace(problem, items=(item, *problem.items[1:]))


def with_first_offer(problem: Problem, offer: Offer) -> Problem:
    """The problem with another first offer."""
    return replace(problem, offers=(offer, *problem.offers[1:]))


CHANGES: dict[str, Callable[[Problem], Problem]] = {
    "counts": lambda p: replace(p, counts=p.counts + 1),
    "needs": lambda p: replace(p, needs=p.needs + 1),
    "slots": lambda p: replace(p, slots=np.maximum(p.slots - 1, 0)),
    "vectors": lambda p: replace(p, vectors=p.vectors + 1),
    "prices": lambda p: replace(p, prices=p.prices[::-1] + 1),
    "limits": lambda p: replace(p, limits=np.minimum(p.limits, 1)),
    "inflated": lambda p: replace(p, inflated=not p.inflated),
    "caps": lambda p: replace(p, caps=np.array([3]), membership=np.ones((len(p.items), 1), bool)),
    "priority": lambda p: with_first_item(p, of_other_priority(p.items[0])),
    "groups": lambda p: with_first_item(p, replace(p.items[0], groups=(0, 1))),
    "most": lambda p: with_first_offer(p, replace(p.offers[0], most=1)),
    "over-subscription": lambda p: with_first_offer(p, replace(p.offers[0], over_subscription=1)),
    "order of classes": lambda p: replace(p, items=(*p.items[1:], p.items[0])),
}


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    forget_searches()


def shown(answer: CachedSearch) -> tuple[object, ...]:
    """What is bought, in values that compare."""
    packing = answer.found.packing
    return packing.bins.tolist(), packing.amounts.tolist(), answer.found.optimal


def test_equal_problem_has_the_answer_that_is_known() -> None:
    """A cluster at rest asks for the same purchases in every plan."""
    assert known_or_searched(random_problem(1), SECONDS) is known_or_searched(
        random_problem(1), SECONDS
    )


@pytest.mark.parametrize("change", CHANGES)
def test_other_problem_is_searched(change: str) -> None:
    """It would get the nodes of another purchase."""
    problem = random_problem(1)
    first = known_or_searched(problem, SECONDS)
    assert known_or_searched(CHANGES[change](problem), SECONDS) is not first


def test_other_budget_is_searched() -> None:
    """A longer search may find more."""
    first = known_or_searched(random_problem(1), SECONDS)
    assert known_or_searched(random_problem(1), 2 * SECONDS) is not first


def test_what_is_known_is_what_a_search_finds() -> None:
    """In whatever order the problems came before."""
    for seed in [*range(PROBLEMS), *range(PROBLEMS)]:
        problem = random_problem(seed)
        fair = fair_prices(problem)
        searched = CachedSearch(fair=fair, found=search(problem, fair, SECONDS))
        assert shown(known_or_searched(problem, SECONDS)) == shown(searched)


def test_what_is_known_cannot_be_written_to() -> None:
    """One plan would change what the next one buys."""
    answer = known_or_searched(random_problem(1), SECONDS)
    with pytest.raises(ValueError, match="read-only"):
        answer.found.packing.bins[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        answer.fair.items[0] = 0


def test_large_purchase_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory, and hardly ever comes again."""
    cells = random_problem(1).slots.size
    assert cells < CELLS_MAX
    monkeypatch.setattr("reconciler.planner.capacity.search_cache.CELLS_MAX", cells - 1)
    first = known_or_searched(random_problem(1), SECONDS)
    assert known_or_searched(random_problem(1), SECONDS) is not first


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes his pods all the time would fill the memory with his purchases."""
    monkeypatch.setattr("reconciler.planner.capacity.search_cache.NUMBERS_PER_ENTRY", 1)
    first = known_or_searched(random_problem(0), SECONDS)
    for seed in range(1, 2 * PROBLEMS):
        known_or_searched(random_problem(seed), SECONDS)
    assert known_or_searched(random_problem(0), SECONDS) is not first


def on_two_of_each(seed: int) -> Problem:
    """The pods of a problem, and two nodes of each offer that are on their way."""
    problem = random_problem(seed)
    return replace(problem, limits=np.full_like(problem.limits, 2))


def test_pods_on_a_set_of_nodes_are_packed_once() -> None:
    """While nodes are on their way, every plan asks whether they hold the pods that wait."""
    first = known_or_packed(on_two_of_each(1), SECONDS)
    assert known_or_packed(on_two_of_each(1), SECONDS) is first


@pytest.mark.parametrize("change", CHANGES)
def test_other_pods_or_nodes_are_packed(change: str) -> None:
    """Places would be promised that are not there."""
    problem = on_two_of_each(1)
    first = known_or_packed(problem, SECONDS)
    assert known_or_packed(CHANGES[change](problem), SECONDS) is not first


def test_what_is_known_of_a_set_is_what_packing_finds() -> None:
    """In whatever order the problems came before, and also where it finds no way."""
    ways = set()
    for seed in [*range(PROBLEMS), *range(PROBLEMS)]:
        problem = on_two_of_each(seed)
        answer = on_set(problem, problem.limits, Effort(SECONDS))
        kept = known_or_packed(problem, SECONDS)
        assert kept.refuted == answer.refuted
        packed, known = answer.packing, kept.packing
        assert (known is None) == (packed is None)
        if packed is not None and known is not None:
            assert known.bins.tolist() == packed.bins.tolist()
            assert known.amounts.tolist() == packed.amounts.tolist()
        ways.add(packed is None)
    assert ways == {True, False}

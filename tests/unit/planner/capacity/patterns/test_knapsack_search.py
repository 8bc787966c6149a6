"""What a node may hold at most, against trying everything."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from reconciler.planner.capacity.patterns.knapsack import Knapsacks
from reconciler.planner.capacity.patterns.knapsack_search import fill
from reconciler.planner.capacity.problem.problem import Problem
from tests.unit.planner.capacity.problems import (
    most_worth,
    patterns_of,
    random_problem,
    random_worth,
)

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_wide_search_finds_the_best_pattern_of_every_offer(seed: int) -> None:
    """The cheapest purchase would be missed for want of a pattern."""
    problem = random_problem(seed)
    worth = random_worth(problem, seed)
    costs = np.full(len(problem.prices), 1.0)
    found = fill(Knapsacks(problem), worth, costs, margin=0.0, width=10_000)
    for offer in range(len(problem.prices)):
        best = most_worth(problem, offer, worth)
        values = found.amounts[found.offers == offer] @ worth
        assert values.max(initial=0.0) == pytest.approx(best)
        assert found.most[offer] == pytest.approx(max(best, 1.0))


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_narrow_search_never_claims_that_a_node_holds_less_than_it_can(
    seed: int, width: int
) -> None:
    """The bound in a plan would be above the true optimum."""
    problem = random_problem(seed)
    worth = random_worth(problem, seed)
    found = fill(
        Knapsacks(problem), worth, problem.prices.astype(np.float64), margin=1e-4, width=width
    )
    for offer in range(len(problem.prices)):
        assert found.most[offer] >= most_worth(problem, offer, worth) * (1 - 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_pattern_found_is_one_that_a_node_can_hold(seed: int) -> None:
    """Pods would be promised room that does not exist."""
    problem = random_problem(seed)
    worth = random_worth(problem, seed)
    found = fill(
        Knapsacks(problem), worth, problem.prices.astype(np.float64) / 2, margin=0.0, width=5
    )
    for offer, amounts in zip(found.offers.tolist(), found.amounts, strict=True):
        assert any((amounts == held).all() for held in patterns_of(problem, offer))


def test_pods_that_no_longer_wait_are_not_in_patterns() -> None:
    """What is left after most nodes are chosen would be covered twice and paid twice."""
    problem = random_problem(1)
    knapsacks = Knapsacks(problem)
    counts = problem.counts.copy()
    counts[0] = 0
    knapsacks.demand(counts)
    found = fill(
        knapsacks,
        random_worth(problem, 1),
        problem.prices.astype(np.float64) / 10,
        margin=0.0,
        width=50,
    )
    assert len(found.amounts)
    assert not found.amounts[:, 0].any()


@pytest.mark.parametrize(("asking", "left_out"), [(1, 30), (2, 0)])
def test_resources_that_one_item_asks_for_take_no_time(asking: int, left_out: int) -> None:
    """A hundred pods with a host port each took twelve seconds, by the square of the ports."""
    problem = random_problem(1)
    needs, room = problem.with_caps()
    more = np.zeros((*needs.shape[:2], 30), dtype=np.int64)
    more[:asking] = 1
    wide = SimpleNamespace(
        prices=problem.prices,
        items=problem.items,
        slots=problem.slots,
        counts=problem.counts,
        with_caps=lambda: (
            np.concatenate([needs, more], axis=2),
            np.concatenate([room, np.ones((len(room), 30), dtype=np.int64)], axis=1),
        ),
    )
    knapsacks = Knapsacks(cast("Problem", wide))
    assert knapsacks.room.shape[1] <= room.shape[1] + 30 - left_out
    assert (knapsacks.room.shape[1] > room.shape[1]) is (left_out == 0)

"""From shares of patterns to whole nodes."""

import numpy as np
import pytest

from reconciler.planner.capacity.packings.exact import exact
from reconciler.planner.capacity.patterns.columns import improve
from reconciler.planner.capacity.patterns.rounding import top_up
from tests.unit.planner.capacity.problems import random_problem

SEEDS = range(40)


def test_search_alone_serves_every_pod_at_about_the_least_cost() -> None:
    """Purchases of more pods than can be tried out would cost more than they must."""
    ratios = []
    for seed in SEEDS:
        problem = random_problem(seed)
        found = improve(problem, [], 0.2).packing
        cheapest = exact(problem)
        assert cheapest is not None
        assert (found.served() == problem.counts).all()
        ratios.append(found.cost(problem) / cheapest.cost(problem))
    assert min(ratios) >= 1
    assert np.mean(ratios) <= 1.06


@pytest.mark.parametrize("seed", SEEDS)
def test_search_without_any_effort_still_serves_every_pod(seed: int) -> None:
    """A budget of nothing would leave pods waiting."""
    problem = random_problem(seed)
    found = improve(problem, [], 0.0).packing
    assert (found.served() == problem.counts).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_topping_up_respects_room_caps_and_demand(seed: int) -> None:
    """Pods would be promised room that does not exist."""
    problem = random_problem(seed)
    bins = np.arange(len(problem.prices), dtype=np.int64).repeat(2)
    amounts = np.zeros((len(bins), len(problem.items)), dtype=np.int64)
    top_up(problem, bins, amounts, problem.counts)
    assert (amounts.sum(axis=0) <= problem.counts).all()
    load = np.einsum("ni,nid->nd", amounts, problem.needs[:, bins].swapaxes(0, 1))
    assert (load <= problem.vectors[bins]).all()
    assert (amounts @ problem.membership <= problem.caps).all()
    left = problem.counts - amounts.sum(axis=0)
    room = problem.vectors[bins] - load
    uncapped = ~problem.membership.any(axis=1)
    for item in (uncapped & (left > 0)).nonzero()[0]:
        assert not (problem.needs[item, bins] <= room).all(axis=1).any()

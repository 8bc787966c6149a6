"""Caps per node in the bound of fair prices."""

import pytest

from reconciler.planner.capacity.bounds.fair_prices import fair_prices, lower_bound
from tests.unit.planner.capacity.problems import most_worth, random_problem

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_node_holds_more_than_it_costs(seed: int) -> None:
    """The bound would exceed the optimum."""
    problem = random_problem(seed)
    fair = fair_prices(problem, 8)
    for offer, price in enumerate(problem.prices.tolist()):
        assert most_worth(problem, offer, fair.items) <= price * (1 + 1e-6)


def test_caps_lift_the_bound() -> None:
    """Pods that must be apart take a node each, whatever they ask for."""
    capped = [problem for problem in map(random_problem, SEEDS) if len(problem.caps)]
    lifts = [
        lower_bound(problem, fair_prices(problem, 8)) - lower_bound(problem, fair_prices(problem))
        for problem in capped
    ]
    assert min(lifts) >= 0
    assert max(lifts) > 0

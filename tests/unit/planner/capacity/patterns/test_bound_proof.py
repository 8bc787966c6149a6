"""The proof that turns fair prices of pods into a lower bound."""

import numpy as np
import pytest

from reconciler.planner.capacity.packings.exact import exact
from reconciler.planner.capacity.patterns.bound_proof import proven_bound
from reconciler.planner.capacity.problem.effort import Effort
from tests.unit.planner.capacity.problems import random_problem, random_worth


@pytest.mark.parametrize("seed", range(60))
def test_proven_bound_is_never_above_the_cheapest_purchase(seed: int) -> None:
    """A report of savings left would be a lie."""
    problem = random_problem(seed)
    cheapest = exact(problem)
    assert cheapest is not None
    worth, steady = random_worth(problem, seed), random_worth(problem, seed + 1)
    for effort in (1e-9, 1.0):
        for mixed in (None, steady):
            bound = proven_bound(problem, worth, 0.0, Effort(effort), mixed)
            assert bound <= cheapest.cost(problem)


def test_steadier_prices_never_spoil_a_proof() -> None:
    """A plan would state a gap that it had closed already."""
    for seed in range(20):
        problem = random_problem(seed)
        worth = random_worth(problem, seed)
        alone = proven_bound(problem, worth, 0.0, Effort(1.0))
        assert proven_bound(problem, worth, 0.0, Effort(1.0), worth * 0.5) >= alone


def test_proof_that_cannot_exceed_what_is_known_costs_nothing() -> None:
    """Every cycle would pay for proofs that tell nothing."""
    problem = random_problem(0)
    effort = Effort(1.0)
    worth = random_worth(problem, 0)
    assert proven_bound(problem, worth, float(worth @ problem.counts), effort) == 0.0
    assert effort.seconds == 1.0


def test_worthless_pods_prove_nothing() -> None:
    """A division by nothing would end the cycle."""
    problem = random_problem(0)
    assert proven_bound(problem, np.zeros(len(problem.items)), 0.0, Effort(1.0)) == 0.0

"""The cheapest set of nodes for few pods, and its proof."""

import numpy as np
import pytest

from reconciler.planner.capacity.bounds.assignment import assignment_bound
from reconciler.planner.capacity.bounds.fair_prices import fair_prices
from reconciler.planner.capacity.node_sets.listing import by_resources, list_sets
from reconciler.planner.capacity.node_sets.search import CheapestSet, cheapest_set, suits
from reconciler.planner.capacity.packings.exact import exact
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.capacity.search import candidates
from reconciler.planner.planner import plan
from tests.benchmarks.small_sets import small_set
from tests.unit.planner.capacity.problems import random_problem

SEEDS = range(40)


def _searched(problem: Problem, seconds: float = 0.2) -> CheapestSet:
    seeds = list(candidates(problem, fair_prices(problem)))
    divisible = assignment_bound(problem)
    assert divisible is not None
    return cheapest_set(problem, seeds[0], seeds, divisible, Effort(seconds))


def _assert_possible(problem: Problem, packing: Packing) -> None:
    amounts = packing.amounts
    assert (amounts.sum(axis=0) == problem.counts).all()
    load = np.einsum("ni,nid->nd", amounts, problem.needs[:, packing.bins].swapaxes(0, 1))
    assert (load <= problem.vectors[packing.bins]).all()
    assert (amounts @ problem.membership <= problem.caps).all()
    assert (amounts <= problem.slots[:, packing.bins].T).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_small_purchase_is_the_cheapest_and_says_so(seed: int) -> None:
    """A dozen pods would cost a node too much, or the plan would doubt what is the optimum."""
    problem = random_problem(seed)
    assert suits(problem)
    found, known = _searched(problem), exact(problem)
    assert known is not None
    _assert_possible(problem, found.packing)
    assert found.packing.cost(problem) == known.cost(problem)
    assert found.nano_usd_least == known.cost(problem)


@pytest.mark.parametrize("seed", SEEDS)
def test_least_cost_is_a_bound_however_soon_the_effort_is_spent(seed: int) -> None:
    """A plan would call itself nearer to the optimum than it is."""
    problem = random_problem(seed)
    found, known = _searched(problem, seconds=0.002), exact(problem)
    assert known is not None
    assert found.nano_usd_least <= known.cost(problem) <= found.packing.cost(problem)
    _assert_possible(problem, found.packing)


def test_more_nodes_of_a_fleet_than_it_may_have_are_not_bought() -> None:
    """The plan would ask for nodes that the fleet's maximum forbids."""
    problem = random_problem(3)
    free = _searched(problem).packing
    limits = np.bincount(free.bins, minlength=len(problem.prices)) - 1
    tight = Problem(
        **{
            **{name: getattr(problem, name) for name in Problem.__slots__},
            "limits": np.where(limits >= 0, limits, problem.limits),
        }
    )
    listed = list_sets(tight, by_resources(tight), 0, 3 * free.cost(problem), Effort(10.0))
    assert listed is not None
    assert (listed.sets <= tight.limits).all()
    assert (listed.costs[1:] >= listed.costs[:-1]).all()


def test_listing_sets_ends_with_the_effort_for_it() -> None:
    """With many fleets it once took three seconds of a plan that may search for a fifth of one."""
    problem = random_problem(3)
    below = 3 * _searched(problem).packing.cost(problem)
    effort = Effort(10.0)
    assert list_sets(problem, by_resources(problem), 0, below, effort) is not None
    spent = 10.0 - effort.seconds
    assert spent > 0
    short = Effort(spent / 2)
    assert list_sets(problem, by_resources(problem), 0, below, short) is None
    assert not short.left


@pytest.mark.parametrize("number", [2, 4, 18, 24, 29, 33, 41, 57])
def test_real_shapes_are_bought_at_the_least_cost(number: int) -> None:
    """Purchases of every day would cost up to a quarter more than they must."""
    made = plan(*small_set(number).make())
    assert made.cost.gap == 0
    assert not made.unplaceable

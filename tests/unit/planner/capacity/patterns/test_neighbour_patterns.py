"""Patterns next to known ones, against trying everything."""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from reconciler.planner.capacity.patterns.columns import improve
from reconciler.planner.capacity.patterns.master import Master
from reconciler.planner.capacity.patterns.neighbour_patterns import (
    MULTIPLES,
    Fillings,
    NeighbourPricer,
)
from reconciler.planner.capacity.patterns.pricing import GreedyPricer
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray
from tests.unit.planner.capacity.problems import patterns_of, random_problem, random_worth

SEEDS = range(40)


def most_worth_filling(
    needs: IntArray, counts: IntArray, worth: FloatArray, room: IntArray
) -> float:
    """The most that some pods of one item, or a pair, in this room are worth."""
    best = 0.0
    items = range(len(counts))
    for count in range(1, MULTIPLES + 1):
        for chosen in combinations_with_replacement(items, count):
            if count > 2 and len(set(chosen)) > 1:
                continue
            held = np.bincount(chosen, minlength=len(counts))
            if (held <= counts).all() and (needs @ held <= room).all():
                best = max(best, float(held @ worth))
    return best


@pytest.mark.parametrize("seed", SEEDS)
def test_filling_looked_up_is_the_one_worth_most_for_the_room(seed: int) -> None:
    """Nodes would be bought with room for another pod."""
    problem = random_problem(seed)
    needs, worth = problem.needs[:, 0, :2].T, random_worth(problem, seed)
    largest = problem.vectors[:, :2].max(axis=0)
    fillings = Fillings(needs, largest)
    fillings.rank(worth, problem.counts)
    for share in np.linspace(0, 1, 9):
        room = (largest * share).astype(np.int64)
        found = fillings.best(room[:, None])
        best = most_worth_filling(needs, problem.counts, worth, room)
        assert fillings.value[found[0]] == pytest.approx(best)


def nearby(problem: Problem, worth: FloatArray) -> tuple[NeighbourPricer, Master]:
    """A pricer next to a few greedily filled nodes."""
    master, greedy = Master(problem), GreedyPricer(problem)
    master.add(*greedy.seeds(worth, Effort(1.0)))
    return NeighbourPricer(problem, master, greedy), master


@pytest.mark.parametrize("seed", SEEDS)
def test_pattern_next_to_a_known_one_fits_and_gains(seed: int) -> None:
    """Pods would be promised room that does not exist, or rounds of the search be wasted."""
    problem = random_problem(seed)
    worth = random_worth(problem, seed)
    costs = problem.prices.astype(np.float64) * 0.3
    pricer, _ = nearby(problem, worth)
    offers, amounts = pricer.patterns(worth, costs, Effort(1.0))
    assert len(offers)
    assert (amounts @ worth > costs[offers]).all()
    for offer, pattern in zip(offers.tolist(), amounts, strict=True):
        assert any((pattern == held).all() for held in patterns_of(problem, offer))


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_that_no_longer_wait_are_not_in_patterns(seed: int) -> None:
    """What is left after most nodes are chosen would be covered twice and paid twice."""
    problem = random_problem(seed)
    worth = random_worth(problem, seed)
    pricer, _ = nearby(problem, worth)
    counts = np.minimum(problem.counts, 1)
    counts[0] = 0
    pricer.demand(counts)
    _, amounts = pricer.patterns(worth, problem.prices / 100, Effort(1.0))
    assert len(amounts)
    assert (amounts <= counts).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_search_for_many_equal_pods_serves_all_near_the_least_cost(seed: int) -> None:
    """Clusters would pay for nodes that nobody needs."""
    problem = random_problem(seed)
    many = replace(problem, counts=problem.counts * 40)
    found = improve(many, [], 0.2)
    assert (found.packing.served() == many.counts).all()
    assert found.divisible is not None
    least = found.divisible.nano_usd
    assert least <= found.packing.cost(many)
    assert found.settled
    fractional = float(found.worth @ many.counts)
    assert found.packing.cost(many) <= fractional + 2 * int(many.prices.max())

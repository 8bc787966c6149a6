"""How good purchases are, against the true optimum of tiny instances."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from reconciler.planner.planner import plan
from tests.builders import make_settings, make_snapshot
from tests.properties.optimum import (
    dozen,
    least_cost,
    least_cost_beside,
    random_cluster,
    random_instance,
    servable,
)

INSTANCES = 500
WITHIN = 1.05
OPTIMAL_SHARE = 0.95


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One instance."""

    seed: int
    cost: float
    bound: float
    optimum: float

    @property
    def optimal(self) -> bool:
        """As cheap as can be."""
        return self.cost <= self.optimum + 1e-9


def measure(count: int) -> Iterator[Measured]:
    """Plan and solve so many instances."""
    for seed in range(count):
        pods, fleets = random_instance(seed)
        made = plan(make_snapshot(*pods), make_settings(*fleets))
        served = [p for p in pods if servable(p, fleets)]
        assert {p.pod for p in made.placements} == {p.key for p in served}, f"seed {seed}"
        yield Measured(
            seed=seed,
            cost=made.cost.hourly_usd_after,
            bound=made.cost.hourly_usd_lower_bound,
            optimum=float(least_cost(served, fleets)),
        )


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    """The committed number of instances, solved once."""
    return list(measure(INSTANCES))


DOZENS = (24, 103, 107, 242, 0, 1)
"""The first four cost 14 % too much when only ten different pods were packed by trying all."""


@pytest.mark.parametrize("seed", DOZENS)
def test_dozen_pods_cost_no_more_than_they_must(seed: int) -> None:
    """Most purchases are small: a rollout of a few services, and nobody checks what they cost."""
    pods, fleets = dozen(seed)
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert len(made.placements) == len(pods)
    assert made.cost.hourly_usd_after == pytest.approx(float(least_cost(pods, fleets)))
    assert made.cost.gap == 0


CLUSTERS = (*range(150), 644, 1127)
"""With nodes that have room: what could go where is tried out in full, which takes long. The last
ones had a bound above the optimum: one pod on a node that exists saved a whole dear one."""


def test_lower_bound_beside_nodes_with_room_is_never_above_the_true_optimum() -> None:
    """A report of savings left would be a lie wherever pods found room on nodes that exist."""
    for seed in CLUSTERS:
        (pods, fleets), nodes = random_cluster(seed)
        used = [thing for pair in nodes for thing in pair]
        made = plan(make_snapshot(*pods, *used), make_settings(*fleets))
        served = [p for p in pods if servable(p, fleets)]
        optimum = float(least_cost_beside(served, fleets, nodes))
        before = made.cost.hourly_usd_before
        assert made.cost.hourly_usd_lower_bound - before <= optimum + 1e-6, f"seed {seed}"


def test_lower_bound_is_never_above_the_true_optimum(measured: list[Measured]) -> None:
    """A report of savings left would be a lie."""
    assert [m for m in measured if m.bound > m.optimum + 1e-6] == []


def test_cost_is_never_below_the_true_optimum(measured: list[Measured]) -> None:
    """Pods would be promised room that does not exist."""
    assert [m for m in measured if m.cost < m.optimum - 1e-6] == []


def test_cost_is_the_optimum_nearly_always(measured: list[Measured]) -> None:
    """Clusters would pay for nodes that nobody needs."""
    share = sum(m.optimal for m in measured) / len(measured)
    assert share >= OPTIMAL_SHARE


def test_cost_is_within_five_percent_of_the_optimum_always(measured: list[Measured]) -> None:
    """The odd bad case would still be on the bill every hour."""
    assert [m for m in measured if m.cost > m.optimum * WITHIN + 1e-9] == []

"""The order of scale-up (docs/scale-up.md)."""

from reconciler.planner.cycle import Cycle
from reconciler.planner.policies.scale_up.buy import buy_capacity
from reconciler.planner.policies.scale_up.place import place_on_existing, place_on_nominated
from reconciler.planner.policies.scale_up.progress import (
    judge_demand,
    note_purchases,
    wait_for_hoped,
)
from reconciler.planner.policies.scale_up.take_back import take_back_draining


def propose(cycle: Cycle) -> None:
    """Serve all demand from the cheapest source that can take it, and explain what is left."""
    place_on_nominated(cycle)
    free_before = cycle.sim.available().copy()
    place_on_existing(cycle)
    take_back_draining(cycle)
    wait_for_hoped(cycle)
    judge_demand(cycle)
    buy_capacity(cycle, free_before)
    note_purchases(cycle)

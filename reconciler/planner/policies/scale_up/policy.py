"""The order of scale-up (docs/scale-up.md)."""

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.policies.scale_up.place import place_on_existing, place_on_nominated
from reconciler.planner.policies.scale_up.progress import (
    judge_demand,
    note_purchases,
    reserve_zone_attempts,
)
from reconciler.planner.policies.scale_up.sector_purchases import buy_for_sectors
from reconciler.planner.policies.scale_up.take_back import take_back_draining


def propose(builder: PlanBuilder) -> None:
    """Serve all demand from the cheapest source that can take it, and explain what is left."""
    place_on_nominated(builder)
    free_before = builder.sim.available().copy()
    place_on_existing(builder)
    take_back_draining(builder)
    reserve_zone_attempts(builder)
    judge_demand(builder)
    buy_for_sectors(builder, free_before)
    note_purchases(builder)

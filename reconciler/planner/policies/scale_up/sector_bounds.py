"""Lower bounds on the cost of a plan's purchases, added up where that is valid."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.offers import offer_of
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.policies.scale_up.certificate import (
    PurchaseEvidence,
    distinct_offers,
    least_cost,
)
from reconciler.planner.policies.scale_up.sector_groups import SectorGroup, connected


def note_bounds(builder: PlanBuilder, groups: Sequence[SectorGroup], free_before: IntArray) -> None:
    """Note what the plan's purchases must cost at least.

    Bounds add up only if no node can serve pods of both: all else is one purchase, in which each
    pod may go to each node that takes it.
    """
    served = [group for group in groups if any(w.done for w in group.members)]
    for together in _merged_groups(builder, served):
        spent = sum(group.nano_usd_per_hour for group in together)
        if spent:
            members = [waiting for group in together for waiting in group.members]
            evidence = together[0].evidence if len(together) == 1 else _all(builder, together)
            bound = least_cost(builder, members, evidence, free_before, spent)
            builder.purchases.note_bound(bound)


def _merged_groups(builder: PlanBuilder, groups: Sequence[SectorGroup]) -> list[list[SectorGroup]]:
    """Return the groups, merged if one's pods may be on another's nodes."""
    if len(groups) < 2 or not any(group.nano_usd_per_hour for group in groups):
        return [list(groups)] if groups else []
    fleets = [s for s in builder.view.inventory.fleets if not s.unavailable]
    table = OfferTable(builder.sim, [offer_of(builder, status) for status in fleets])
    sectors = np.array([s.settings.sector for s in fleets], dtype=np.str_)
    sets = []
    for group in groups:
        takers = np.zeros(len(fleets), dtype=np.bool_)
        for waiting in group.members:
            if waiting.done:
                takers |= table.slots(waiting.pod_class) > 0
        reached = {*group.sectors, *(str(sector) for sector in sectors[takers])}
        sets.append([other for other in groups if reached.intersection(other.sectors)])
    return connected(groups, sets)


def _all(builder: PlanBuilder, groups: Sequence[SectorGroup]) -> PurchaseEvidence:
    """Return what was on offer to any of the groups, even if nothing was bought for one."""
    worth: dict[int, float] = {}
    steady: dict[int, float] = {}
    for group in groups:
        worth |= group.evidence.worth
        steady |= group.evidence.steady
    unasked = {s for group in groups if not group.evidence.tables for s in group.sectors}
    fleets = [s for s in builder.view.inventory.fleets if s.settings.sector in unasked]
    tables = [table for group in groups for table in group.evidence.tables]
    tables.append(OfferTable(builder.sim, [offer_of(builder, status) for status in fleets]))
    table = OfferTable(builder.sim, distinct_offers(tables))
    return PurchaseEvidence(tables=[table], worth=worth, steady=steady, optimal=False)

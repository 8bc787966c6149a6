"""The order of disruptions (docs/scale-in.md).

Forced methods run before demand is placed, so that demand does not use the nodes they remove.
Voluntary ones run after it, on what demand leaves.
"""

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.context import make_context
from reconciler.planner.disruption.drains.soft_taints import mark_unneeded
from reconciler.planner.disruption.drains_under_way import continue_drains
from reconciler.planner.disruption.method import Method
from reconciler.planner.disruption.methods import (
    composition,
    consolidation,
    departing,
    deschedule,
    drifted,
    empty,
    expired,
    fallback,
    interrupted,
    orphaned,
    rebalance,
    spot_reschedule,
    spot_return,
    stuck,
    underutilized,
    unhealthy,
)
from reconciler.planner.disruption.voluntary import VoluntaryRun

FORCED: tuple[Method[PlanBuilder], ...] = (stuck.METHOD, unhealthy.METHOD)
"""Held by no disruption budget; what they take away counts against them."""

AFTER_DEMAND: tuple[Method[PlanBuilder], ...] = (interrupted.METHOD,)
"""Forced as well. Their nodes are closed and their pods are demand from the opening of the plan;
they note which of the purchases stand in for a node."""

EMPTY: tuple[Method[VoluntaryRun], ...] = (empty.METHOD,)
"""They leave without a move. They come first: what is about to go takes no pods of others."""

VOLUNTARY: tuple[Method[VoluntaryRun], ...] = (
    rebalance.METHOD,
    drifted.UNDER_WAY,
    consolidation.UNDER_WAY,
    departing.METHOD,
    expired.METHOD,
    drifted.METHOD,
    spot_return.METHOD,
    underutilized.METHOD,
    consolidation.METHOD,
)
"""For nodes with pods, one after the other. Nodes for which others were bought come before those
for which none were: behind them they would wait beside idle new nodes."""

AT_REST: tuple[Method[VoluntaryRun], ...] = (composition.METHOD,)
"""For sectors in which no node by itself could leave, now or when its time comes."""

LAST: tuple[Method[VoluntaryRun], ...] = (spot_reschedule.METHOD,)
"""For nodes that stay: they know what leaves, and what may leave in time."""

PODS: tuple[Method[VoluntaryRun], ...] = (deschedule.METHOD,)
"""They evict pods off nodes that stay, and know which nodes leave or may leave in time."""

AFTERWARDS: tuple[Method[PlanBuilder], ...] = (
    orphaned.METHOD,
    fallback.METHOD,
    interrupted.EXPLANATION,
)
"""For nodes without a fleet, which no limit of a fleet knows, and for what is only noted."""


def propose_forced(builder: PlanBuilder) -> None:
    """Remove what is broken."""
    for method in FORCED:
        method.propose(builder)


def propose_voluntary(builder: PlanBuilder) -> None:
    """Empty what EC2 takes back, go on with earlier drains, then remove what nothing needs."""
    for forced in AFTER_DEMAND:
        forced.propose(builder)
    context = make_context(builder, continue_drains(builder))
    run = VoluntaryRun(context)
    for method in EMPTY:
        method.propose(run)
    run.open()
    for method in VOLUNTARY:
        method.propose(run)
    run.tend_timers()
    for method in (*AT_REST, *LAST):
        method.propose(run)
    for method in PODS:
        method.propose(run)
    mark_unneeded(builder, context.unneeded, context.not_looked_at, context.room.left)
    for each in AFTERWARDS:
        each.propose(builder)

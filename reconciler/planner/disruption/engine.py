"""The order of disruptions (docs/scale-in.md).

Forced methods run before demand is placed, so that demand does not use the nodes they remove.
Voluntary ones run after it, on what demand leaves.
"""

from collections.abc import Callable

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.context import make_context
from reconciler.planner.disruption.drains.soft_taints import mark_unneeded
from reconciler.planner.disruption.drains_under_way import continue_drains
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
from reconciler.planner.disruption.set_drains import continue_sets
from reconciler.planner.disruption.voluntary import VoluntaryRun

Method = Callable[[PlanBuilder], None]
"""Reads what was decided before, and writes through the builder."""

VoluntaryMethod = Callable[[VoluntaryRun], None]
"""The same for methods that share one run over the candidates."""

FORCED: tuple[Method, ...] = (stuck.propose, unhealthy.propose)
"""Held by no disruption budget; what they take away counts against them."""

AFTER_DEMAND: tuple[Method, ...] = (interrupted.propose,)
"""Forced as well. Their nodes are closed and their pods are demand from the opening of the plan;
they note which of the purchases stand in for a node."""

EMPTY: tuple[VoluntaryMethod, ...] = (empty.propose,)
"""They leave without a move. They come first: what is about to go takes no pods of others."""

VOLUNTARY: tuple[VoluntaryMethod, ...] = (
    rebalance.propose,
    drifted.drain_batches,
    continue_sets,
    departing.propose,
    expired.propose,
    drifted.propose,
    spot_return.propose,
    underutilized.propose,
    consolidation.propose,
)
"""For nodes with pods, one after the other. Nodes for which others were bought come before those
for which none were: behind them they would wait beside idle new nodes."""

AT_REST: tuple[VoluntaryMethod, ...] = (composition.propose,)
"""For sectors in which no node by itself could leave, now or when its time comes."""

LAST: tuple[VoluntaryMethod, ...] = (spot_reschedule.propose,)
"""For nodes that stay: they know what leaves, and what may leave in time."""

PODS: tuple[VoluntaryMethod, ...] = (deschedule.propose,)
"""They evict pods off nodes that stay, and know which nodes leave or may leave in time."""

AFTERWARDS: tuple[Method, ...] = (
    orphaned.propose,
    fallback.propose,
    interrupted.explain_notices,
)
"""For nodes without a fleet, which no limit of a fleet knows, and for what is only noted. Notices
are explained last, since of several reasons why a node stays the last one is shown."""


def propose_forced(builder: PlanBuilder) -> None:
    """Remove what is broken."""
    for method in FORCED:
        method(builder)


def propose_voluntary(builder: PlanBuilder) -> None:
    """Empty what EC2 takes back, go on with earlier drains, then remove what nothing needs."""
    for forced in AFTER_DEMAND:
        forced(builder)
    context = make_context(builder, continue_drains(builder))
    run = VoluntaryRun(context)
    for method in EMPTY:
        method(run)
    run.open()
    for method in VOLUNTARY:
        method(run)
    run.tend_timers()
    for method in (*AT_REST, *LAST):
        method(run)
    for method in PODS:
        method(run)
    mark_unneeded(builder, context.unneeded, context.not_looked_at, context.room.left)
    for each in AFTERWARDS:
        each(builder)

"""The disruption engine: the methods in the order in which they run (docs/scale-in.md).

Forced methods run before demand is placed, so that no demand is placed on nodes that they remove.
Voluntary ones run after it, on what demand leaves free.
"""

from collections.abc import Callable

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.candidate_selection import pause_overdue_timers
from reconciler.planner.disruption.disruption_context import make_context
from reconciler.planner.disruption.drains.soft_taints import update_soft_taints
from reconciler.planner.disruption.methods import (
    consolidation,
    departing,
    deschedule,
    drifted,
    empty,
    expired,
    interrupted,
    orphaned,
    rebalance,
    set_consolidation,
    spot_reschedule,
    spot_return,
    stand_ins,
    stuck,
    underutilized,
    unhealthy,
)
from reconciler.planner.disruption.under_way.drains import continue_drains
from reconciler.planner.disruption.under_way.set_drains import continue_sets
from reconciler.planner.disruption.voluntary_run import VoluntaryRun

Method = Callable[[PlanBuilder], None]
"""A method: it reads the plan so far and adds its decisions through the builder."""

VoluntaryMethod = Callable[[VoluntaryRun], None]
"""A method that shares one run over the candidates with others."""

FORCED: tuple[Method, ...] = (stuck.propose, unhealthy.propose)
"""Forced methods: no disruption budget limits them, but what they take away counts against it."""

AFTER_DEMAND: tuple[Method, ...] = (interrupted.propose,)
"""Forced methods that run after demand.

Their nodes are closed from the start of the plan and the pods of these are demand; the methods note
which purchases replace a node.
"""

EMPTY: tuple[VoluntaryMethod, ...] = (empty.propose,)
"""Methods for nodes without pods. They run first, as such nodes must not take pods of others."""

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
"""Methods for nodes with pods, in order.

Nodes whose replacements were bought come before those without: otherwise the new nodes would stand
idle.
"""

AT_REST: tuple[VoluntaryMethod, ...] = (set_consolidation.propose,)
"""Methods for sectors in which no single node could leave, now or when its time comes."""

LAST: tuple[VoluntaryMethod, ...] = (spot_reschedule.propose,)
"""Methods for nodes that stay: they must know which nodes leave now or later."""

PODS: tuple[VoluntaryMethod, ...] = (deschedule.propose,)
"""Methods that evict single pods from nodes that stay, after all nodes that leave are known."""

AFTERWARDS: tuple[Method, ...] = (
    orphaned.propose,
    stand_ins.propose,
    interrupted.explain_notices,
)
"""Methods for nodes without a fleet, to which no limit of a fleet applies, and methods that only
note something. Notices are explained last, because of several reasons why a node stays the last
one is shown."""


def propose_forced(builder: PlanBuilder) -> None:
    """End the instances that did not join and the nodes that do not work any more."""
    for method in FORCED:
        method(builder)


def propose_voluntary(builder: PlanBuilder) -> None:
    """Empty interrupted nodes, continue the drains of earlier plans, then begin new ones."""
    for forced in AFTER_DEMAND:
        forced(builder)
    context = make_context(builder, continue_drains(builder))
    run = VoluntaryRun(context)
    for method in EMPTY:
        method(run)
    run.open()
    for method in VOLUNTARY:
        method(run)
    run.update_timers()
    for method in (*AT_REST, *LAST):
        method(run)
    pause_overdue_timers(context)
    for method in PODS:
        method(run)
    update_soft_taints(builder, context.unneeded, context.not_looked_at, context.removal_quota.left)
    for step in AFTERWARDS:
        step(builder)

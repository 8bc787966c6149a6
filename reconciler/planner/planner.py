"""The planner: (Snapshot, PlannerSettings) -> Plan, by policies in a fixed order."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from reconciler.model.binding import Binding
from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.clocks import is_skewed
from reconciler.planner.disruption.engine import propose_forced, propose_voluntary
from reconciler.planner.disruption.limits.lowered_targets import lower_unneeded_targets
from reconciler.planner.disruption.limits.removals import settle_removals
from reconciler.planner.disruption.limits.unproven_cluster import (
    hold_for_skew,
    hold_unproven,
)
from reconciler.planner.finished_plan import finished
from reconciler.planner.plan_opening import open_plan
from reconciler.planner.planning_failure import NOTHING, LeftOut, hold_for_failure
from reconciler.planner.policies import capacity_limits, headroom, needed_nodes, scale_up
from reconciler.planner.settings import PlannerSettings

Policy = Callable[[PlanBuilder], None]
"""A policy: it reads the builder's view and earlier decisions, and adds its own through the
builder."""

ORDER: tuple[Policy, ...] = (
    propose_forced,
    capacity_limits.propose,
    scale_up.propose,
    headroom.propose,
    propose_voluntary,
    needed_nodes.propose,
)
"""The policies in order; each sees what earlier ones reserved.

Broken nodes come first, then demand, then savings; at the end no target is left below what is in
use. Headroom comes after demand, so that it takes no pod's place, and before savings, which must
leave it.
"""

WITHOUT_REMOVALS: tuple[Policy, ...] = (
    capacity_limits.propose,
    scale_up.propose,
    headroom.propose_in_place,
    needed_nodes.propose,
)
"""The policies that run while nothing proves that cluster and fleets belong together, or while
the clocks differ. A new policy is not among them unless it is added here."""


def plan(snapshot: Snapshot, settings: PlannerSettings, left_out: LeftOut = NOTHING) -> Plan:
    """Decide everything for one moment; the same snapshot and settings give the same plan.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        left_out: What to leave out of the plan.
    """
    made = finished(decide(snapshot, settings, left_out=left_out))
    return replace(made, no_removals_because=left_out.removals) if left_out.removals else made


def decide(
    snapshot: Snapshot,
    settings: PlannerSettings,
    also: Iterable[Pod] = (),
    left_out: LeftOut = NOTHING,
) -> PlanBuilder:
    """Run all policies and return the builder, whose what-if cluster is the state after the plan.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        also: Pods that are not to be placed, about which questions will be asked.
        left_out: What to leave out of the plan.
    """
    builder = open_plan(snapshot, settings, also, left_out.namespaces)
    skewed = is_skewed(snapshot)
    usual = policies_for(builder.view.inventory.binding, skewed=skewed)
    for propose in WITHOUT_REMOVALS if left_out.removals else usual:
        propose(builder)
    hold_unproven(builder)
    if left_out.removals:
        hold_for_failure(builder, left_out.removals)
    if skewed:
        hold_for_skew(builder)
    if not (left_out.removals or skewed):
        lower_unneeded_targets(builder)
    settle_removals(builder)
    return builder


def policies_for(binding: Binding, *, skewed: bool = False) -> tuple[Policy, ...]:
    """Return the policies to run: all, or only those that neither end, drain nor delete anything.

    Only the latter run while nothing proves the cluster, and while the clocks differ, which makes
    every age, idle time and time limit wrong.
    """
    return ORDER if binding.may_remove and not skewed else WITHOUT_REMOVALS

"""Holds back all removals while nothing proves the cluster, or while clocks differ."""

from datetime import timedelta
from typing import Final

from reconciler.model.actions import (
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    TerminateInstance,
    begins_drain,
)
from reconciler.model.errors import InvariantViolated
from reconciler.model.text import duration
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.clocks import CLOCK_SKEW, clock_skew, is_skewed
from reconciler.planner.fleets.instances.stuck import find_stuck

CODE: Final = "unproven-cluster"


def hold_unproven(builder: PlanBuilder) -> None:
    """Hold what would have been ended, and note on nodes that seem ours why they stay."""
    view = builder.view
    binding = view.inventory.binding
    if binding.may_remove:
        return
    never_joined = {
        stuck_instance.instance.id
        for stuck_instance in view.inventory.stuck
        if stuck_instance.node is None
    }
    never_joined |= {e.instance.id for e in view.inventory.orphans.found if e.node is None}
    for instance in sorted(never_joined):
        builder.hold(CODE, instance=instance)
    for name in sorted(view.inventory.fleet_of_node):
        builder.block(view.nodes[name], CODE, binding.because)


def hold_for_skew(builder: PlanBuilder) -> None:
    """Hold instances that only our clock calls stuck, and note why the fleets' nodes stay."""
    view = builder.view
    skew = clock_skew(view.snapshot)
    side = "ahead of" if skew > timedelta(0) else "behind"
    because = f"our clock is {duration(abs(skew))} {side} EC2's or the API server's"
    held = {each.instance for each in builder.held}
    for stuck in find_stuck(view.snapshot, view.settings, view.at):
        if stuck.node is None and stuck.instance.id not in held:
            builder.hold(CLOCK_SKEW, instance=stuck.instance.id)
    for name in sorted(view.inventory.fleet_of_node):
        builder.block(view.nodes[name], CLOCK_SKEW, f"{because}: its age is not known")


def check_removals(builder: PlanBuilder) -> None:
    """Check that a plan for an unproven cluster, or with skewed clocks, removes nothing.

    Raises:
        InvariantViolated: The plan removes something, which is a bug. No plan is better than one
            that removes a fleet.
    """
    view = builder.view
    binding = view.inventory.binding
    if binding.may_remove and not is_skewed(view.snapshot):
        return
    wrong = next((action for action in builder.actions if _removes(action)), None)
    if wrong is not None:
        raise InvariantViolated(
            f"cluster {view.settings.cluster}",
            f"the plan would remove something although the verdict is {binding.verdict}",
            "nothing was done; please report it with a snapshot",
        )


def _removes(action: AnyAction) -> bool:
    match action:
        case TerminateInstance() | DeleteNode() | EvictPod() | DeletePod():
            return True
        case _:
            return begins_drain(action)

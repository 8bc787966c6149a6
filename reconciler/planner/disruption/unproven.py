"""What is kept because nothing proves the cluster, or because the clocks differ."""

from datetime import timedelta

from reconciler.model.actions import (
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    TerminateInstance,
    begins_drain,
)
from reconciler.model.errors import InvariantViolated
from reconciler.model.ids import NodeName
from reconciler.model.plan import Held
from reconciler.planner.clocks import CLOCK_SKEW, clock_skew, is_skewed
from reconciler.planner.cycle import Cycle
from reconciler.planner.disruption.kept import keep
from reconciler.planner.fleets.stuck import find_stuck
from reconciler.planner.text import duration

CODE = "unproven-cluster"


def hold_unproven(cycle: Cycle) -> None:
    """List what would have been ended, and say why the nodes that seem to be ours stay."""
    binding = cycle.inventory.binding
    if binding.may_remove:
        return
    never_joined = {each.instance.id for each in cycle.inventory.stuck}
    never_joined |= {e.instance.id for e in cycle.inventory.orphans.found if e.node is None}
    cycle.held += [
        Held(node=NodeName(""), code=CODE, instance=each) for each in sorted(never_joined)
    ]
    for name in sorted(cycle.inventory.fleet_of_node):
        keep(cycle, cycle.nodes[name], CODE, binding.because)


def hold_for_skew(cycle: Cycle) -> None:
    """List what our own clock alone would call stuck, and say why the fleets' nodes stay."""
    skew = clock_skew(cycle.snapshot)
    side = "ahead of" if skew > timedelta(0) else "behind"
    because = f"our clock is {duration(abs(skew))} {side} EC2's or the API server's"
    held = {each.instance for each in cycle.held}
    cycle.held += [
        Held(node=NodeName(""), code=CLOCK_SKEW, instance=each.instance.id)
        for each in find_stuck(cycle.snapshot, cycle.settings, cycle.at)
        if each.instance.id not in held
    ]
    for name in sorted(cycle.inventory.fleet_of_node):
        keep(cycle, cycle.nodes[name], CLOCK_SKEW, f"{because}: its age is not known")


def check_removals(cycle: Cycle) -> None:
    """A plan for a cluster that is not proven, or without a clock, ends, drains, deletes nothing.

    Raises:
        InvariantViolated: It does: a bug of ours, and better no plan than the end of a fleet.
    """
    binding = cycle.inventory.binding
    if binding.may_remove and not is_skewed(cycle.snapshot):
        return
    wrong = next((each for each in cycle.actions if _removes(each)), None)
    if wrong is not None:
        raise InvariantViolated(
            f"cluster {cycle.settings.cluster}",
            f"the plan would remove something although the verdict is {binding.verdict}",
            "nothing was done; please report it with a snapshot",
        )


def _removes(action: AnyAction) -> bool:
    match action:
        case TerminateInstance() | DeleteNode() | EvictPod() | DeletePod():
            return True
        case _:
            return begins_drain(action)

"""What is kept because nothing proves that this cluster is the one of the fleets' instances."""

from reconciler.model.actions import (
    DRAINING_TAINT,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.errors import InvariantViolated
from reconciler.model.ids import NodeName
from reconciler.model.plan import Held
from reconciler.planner.cycle import Cycle
from reconciler.planner.leaving.kept import keep

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


def check_removals(cycle: Cycle) -> None:
    """A plan for a cluster that is not proven ends, drains and deletes nothing.

    Raises:
        InvariantViolated: It does: a bug of ours, and better no plan than the end of a fleet.
    """
    binding = cycle.inventory.binding
    if binding.may_remove:
        return
    wrong = next((each for each in cycle.actions if _removes(each)), None)
    changed = any(cycle.targets[s.key] != s.current for s in cycle.inventory.fleets)
    if wrong is not None or (changed and not binding.may_buy):
        raise InvariantViolated(
            f"cluster {cycle.settings.cluster}",
            f"the plan would remove or change something although the verdict is {binding.verdict}",
            "nothing was done; please report it with a snapshot",
        )


def _removes(action: AnyAction) -> bool:
    match action:
        case TerminateInstance() | DeleteNode() | EvictPod() | DeletePod():
            return True
        case TaintNode():
            return action.taint.key == DRAINING_TAINT
        case _:
            return False

"""Sweeps what a deleted fleet left behind (docs/failures.md).

An instance that never joined is ended; a node is ended when it has been empty for
`instance_init_time`, by the steps of scale-in: timer, taint, a last check. A node with pods that
count is never ended here, nor emptied.
"""

from datetime import timedelta

from reconciler.model.actions import (
    AnyAction,
    PolicyName,
    TerminateInstance,
)
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName, PodKey
from reconciler.model.plan import Held
from reconciler.planner.cycle import Cycle, Removal
from reconciler.planner.disruption.blockers import (
    instance_protection,
    irreplaceable_pod,
    protection,
    unreadable,
)
from reconciler.planner.disruption.drains import delete_when_terminated, give_back, taint, terms_of
from reconciler.planner.disruption.idleness import idle_for, is_empty, kept_by_duplicate
from reconciler.planner.disruption.kept import keep
from reconciler.planner.disruption.timers import start_timer, stop_timer
from reconciler.planner.fleets.inventory import is_draining, is_draining_voluntarily
from reconciler.planner.fleets.orphans import Orphan
from reconciler.planner.fleets.stuck_ends import STUCK_CAP
from reconciler.planner.rules import judge_of
from reconciler.planner.settings import ScaleInSettings
from reconciler.planner.text import duration


def propose(cycle: Cycle) -> None:
    """End what certainly belongs to no fleet any more; say why the rest stays."""
    for orphan in cycle.inventory.orphans.found:
        if orphan.node is None:
            _end_unjoined(cycle, orphan)
        else:
            _tend(cycle, orphan, orphan.node)
    for name in sorted(cycle.inventory.orphans.ended):
        delete_when_terminated(cycle, cycle.nodes[name], "ec2-fleet")


def _end_unjoined(cycle: Cycle, orphan: Orphan) -> None:
    if _wait(cycle, orphan):
        return
    if not cycle.stuck_ends.take(orphan.instance.id):
        held = Held(node=NodeName(""), code=STUCK_CAP, instance=orphan.instance.id)
        cycle.held.append(held)
        return
    because = f"its fleet {orphan.fleet_id} is gone and it is no node"
    action = _termination(orphan, "stuck-instance", because)
    _remove(cycle, orphan, action)


def _tend(cycle: Cycle, orphan: Orphan, node: Node) -> None:
    """The next step for a node."""
    kept = _wait(cycle, orphan) or _bar(cycle, node)
    draining = is_draining_voluntarily(node)
    if kept:
        keep(cycle, node, "orphan", f"its fleet {orphan.fleet_id} is gone; {kept}")
        if draining:
            cycle.actions += give_back(node, "scale-in", kept)
        elif not is_empty(cycle, node):
            stop_timer(cycle, node)
    elif draining:
        because = f"its fleet {orphan.fleet_id} is gone, and it is still empty"
        hanging = cycle.stuck_terminating(node.name)
        cycle.actions.append(_termination(orphan, "scale-in", because, hanging))
    elif not is_draining(node):
        _begin(cycle, orphan, node)


def _begin(cycle: Cycle, orphan: Orphan, node: Node) -> None:
    """Start the timer, or taint the node when it has run out."""
    because = f"its fleet {orphan.fleet_id} is gone, and nothing counts on it"
    idle = idle_for(cycle, node)
    if idle is None:
        start_timer(cycle, node, because)
        idle = timedelta(0)
    left = timedelta(seconds=cycle.settings.instance_init_seconds) - idle
    if left > timedelta(0):
        keep(cycle, node, "orphan", f"{because}; {duration(left)} to go")
    else:
        _remove(cycle, orphan, taint(node, "scale-in", because))


def _wait(cycle: Cycle, orphan: Orphan) -> str:
    """What time has still to show; empty when nothing."""
    launched = orphan.instance.launched_at
    wait = timedelta(seconds=cycle.settings.instance_init_seconds)
    if not orphan.certain:
        return "EC2 has not listed it for less than instance_init_time"
    if launched is None or cycle.at - launched < wait:
        return "it was launched less than instance_init_time ago"
    kept = instance_protection(orphan.instance)
    return kept.detail if kept else ""


def _bar(cycle: Cycle, node: Node) -> str:
    """What keeps the node; empty when nothing does."""
    kept = protection(cycle, node)
    if kept:
        return kept.detail
    if unreadable(node) or not node.ready:
        return "it cannot be judged"
    twin = kept_by_duplicate(cycle, node)
    if twin:
        return twin
    if not is_empty(cycle, node):
        return "pods keep it: drain it by hand, or let them move"
    judge = judge_of(terms_of(ScaleInSettings()), cycle.budgets.coverage)
    kept = irreplaceable_pod(judge, cycle.pods_on.get(node.name, ()))
    return kept.detail if kept else ""


def _termination(
    orphan: Orphan, policy: PolicyName, because: str, hanging: tuple[PodKey, ...] = ()
) -> TerminateInstance:
    """Without lowering any target: there is none."""
    return TerminateInstance(
        instance=orphan.instance.id,
        node=orphan.node.name if orphan.node else None,
        fleet=orphan.fleet,
        fleet_id=orphan.fleet_id,
        provider="ec2-fleet",
        region=orphan.instance.region,
        decrement=False,
        precondition="orphan",
        stuck_terminating=hanging,
        policy=policy,
        because=because,
    )


def _remove(cycle: Cycle, orphan: Orphan, action: AnyAction) -> None:
    """What newly begins is counted by the safety stop."""
    key = FleetKey(name=orphan.fleet, region=orphan.instance.region)
    name = orphan.node.name if orphan.node else None
    removal = Removal(key=key, node=name, instance=orphan.instance.id, actions=(action,))
    cycle.removals.append(removal)

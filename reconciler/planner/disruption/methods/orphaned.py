"""Method: removes what a deleted fleet left behind (docs/failures.md).

An instance that never joined is ended. A node is ended when it has been empty for
`instance_init_time`, by the steps of scale-in: timer, taint, a last check. A node with counted pods
is neither drained nor ended.
"""

from datetime import timedelta

from reconciler.model.actions import (
    AnyAction,
    PolicyName,
    TerminateInstance,
)
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, PodKey
from reconciler.model.text import duration
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.builder_values import Removal
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.nodes import (
    TERMINATION_PROTECTED,
    instance_protection,
    irreplaceable_pod,
    kept_by_duplicate,
    protection,
    termination_protection,
    unreadable,
)
from reconciler.planner.disruption.drains.actions import (
    delete_when_terminated,
    give_back,
    taint,
    terms_of,
)
from reconciler.planner.disruption.drains.idleness import idle_for, is_empty
from reconciler.planner.disruption.drains.timers import start_timer, stop_timer
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.fleets.instances.orphans import Orphan
from reconciler.planner.fleets.instances.stuck_ends import STUCK_CAP
from reconciler.planner.nodes.drain_taints import is_draining, is_draining_voluntarily
from reconciler.planner.rules import judge_of
from reconciler.planner.view import ClusterView


def propose(builder: PlanBuilder) -> None:
    """End what certainly belongs to no fleet any more; note why the rest stays."""
    view = builder.view
    for orphan in view.inventory.orphans.found:
        if orphan.node is None:
            _end_unjoined(builder, orphan)
        else:
            _next_step(builder, orphan, orphan.node)
    for name in sorted(view.inventory.orphans.ended):
        delete_when_terminated(builder, view.nodes[name], "ec2-fleet")


def _end_unjoined(builder: PlanBuilder, orphan: Orphan) -> None:
    if _wait(builder.view, orphan) is not None:
        return
    if termination_protection(builder.view, orphan.instance.id) is not None:
        builder.hold(TERMINATION_PROTECTED, instance=orphan.instance.id)
        return
    if not builder.stuck_ends.take(orphan.instance.id):
        builder.hold(STUCK_CAP, instance=orphan.instance.id)
        return
    because = f"its fleet {orphan.fleet_id} is gone and it is not a node"
    action = _termination(orphan, "stuck-instance", because)
    _remove(builder, orphan, action)


def _next_step(builder: PlanBuilder, orphan: Orphan, node: Node) -> None:
    """Take the next step for a node without a fleet."""
    view = builder.view
    kept = _wait(view, orphan) or _blocker(builder, node)
    draining = is_draining_voluntarily(node)
    if kept is not None:
        why = f"its fleet {orphan.fleet_id} is gone; {kept.detail}"
        builder.block(node, "orphan", why)
        if draining:
            builder.cancel_drain(give_back(node, "scale-in", kept.detail))
        elif not is_empty(builder, node):
            stop_timer(builder, node)
    elif draining:
        because = f"its fleet {orphan.fleet_id} is gone, and it is still empty"
        stuck = view.stuck_terminating(node.name)
        builder.finish_drain(_termination(orphan, "scale-in", because, stuck))
    elif not is_draining(node):
        _begin(builder, orphan, node)


def _begin(builder: PlanBuilder, orphan: Orphan, node: Node) -> None:
    """Start the timer of the node, or taint it once the timer has run out."""
    view = builder.view
    because = f"its fleet {orphan.fleet_id} is gone, and it has no counted pods"
    idle = idle_for(view, node)
    if idle is None:
        start_timer(builder, node, because)
        idle = timedelta(0)
    left = timedelta(seconds=view.settings.instance_init_seconds) - idle
    if left > timedelta(0):
        detail = f"{because}; {duration(left)} to go"
        builder.block(node, "orphan", detail, view.at + left)
    else:
        _remove(builder, orphan, taint(node, "scale-in", because))


def _wait(view: ClusterView, orphan: Orphan) -> Blocker | None:
    """Return why the instance is not ended now; None if it may be."""
    launched = orphan.instance.launched_at
    wait = timedelta(seconds=view.settings.instance_init_seconds)
    if not orphan.certain:
        return Blocker("orphan", "EC2 has not listed it for less than instance_init_time")
    if launched is None or view.at - launched < wait:
        return Blocker("orphan", "it was launched less than instance_init_time ago")
    return instance_protection(orphan.instance)


def _blocker(builder: PlanBuilder, node: Node) -> Blocker | None:
    """Return the first blocker of a node without a fleet; None if nothing keeps it."""
    view = builder.view
    kept = protection(view, node)
    if kept is None and (unreadable(node) or not node.ready):
        kept = Blocker("unreadable", "it cannot be judged")
    kept = kept or kept_by_duplicate(view, node)
    if kept is None and not is_empty(builder, node):
        kept = Blocker("has-pods", "pods keep it: drain it by hand, or let them move")
    if kept is not None:
        return kept
    judge = judge_of(terms_of(ScaleInSettings()), builder.budgets.coverage, view.at)
    return irreplaceable_pod(judge, view.pods_on.get(node.name, ()))


def _termination(
    orphan: Orphan, policy: PolicyName, because: str, stuck: tuple[PodKey, ...] = ()
) -> TerminateInstance:
    """Return the action that ends the instance; no target is lowered as its fleet is gone."""
    return TerminateInstance(
        instance=orphan.instance.id,
        node=orphan.node.name if orphan.node else None,
        fleet=orphan.fleet,
        fleet_id=orphan.fleet_id,
        provider="ec2-fleet",
        region=orphan.instance.region,
        decrement=False,
        precondition="orphan",
        stuck_terminating=stuck,
        policy=policy,
        because=because,
    )


def _remove(builder: PlanBuilder, orphan: Orphan, action: AnyAction) -> None:
    """Begin the removal through the safety stop."""
    key = FleetKey(name=orphan.fleet, region=orphan.instance.region)
    name = orphan.node.name if orphan.node else None
    removal = Removal(key=key, node=name, instance=orphan.instance.id, actions=(action,))
    builder.begin_removal(removal)

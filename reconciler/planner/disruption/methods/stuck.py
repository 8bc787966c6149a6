"""Method: ends stuck instances; their fleets launch others, unless a rolling update is halted."""

from typing import Final

from reconciler.model.actions import TerminateInstance
from reconciler.model.text import duration
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.builder_values import Removal
from reconciler.planner.disruption.blockers.nodes import (
    PROTECTED,
    TERMINATION_PROTECTED,
    instance_protection,
    termination_protection,
)
from reconciler.planner.disruption.limits.removals import target_may_fall
from reconciler.planner.fleets.instances.stuck_ends import STUCK_CAP

UNLISTED_NODE: Final = "unlisted-node"


def propose(builder: PlanBuilder) -> None:
    """End each stuck instance, the oldest first, as far as the limits allow.

    Instances that a pod hides are listed as held.
    """
    view = builder.view
    _hold_hidden(builder)
    for stuck in view.inventory.stuck:
        status, instance = view.statuses.get(stuck.key), stuck.instance
        if status is None or status.live is None or instance.launched_at is None:
            continue
        if stuck.node is not None:
            continue  # it goes as a node that is not Ready, or as an empty one
        if status.may_end_nothing:
            continue  # EC2 would refuse it, and it would use up the limit of the others
        protected = instance_protection(instance)
        if protected is not None:
            builder.hold(PROTECTED, instance=instance.id, detail=protected.detail)
            continue
        if termination_protection(view, instance.id) is not None:
            builder.hold(TERMINATION_PROTECTED, instance=instance.id)
            continue
        if not builder.stuck_ends.take(instance.id):
            builder.hold(STUCK_CAP, instance=instance.id)
            continue
        age = duration(view.at - instance.launched_at)
        update = view.inventory.updates.get(stuck.key)
        failed = update is not None and instance.launch_template_version == update.version
        given_up = failed and target_may_fall(builder, stuck.key)
        then = "its fleet launches another, unless its target is lowered"
        if given_up:
            then = "its fleet's rolling update is halted, and no other is launched in its place"
        action = TerminateInstance(
            instance=instance.id,
            node=None,
            fleet=stuck.key.name,
            fleet_id=instance.fleet_id or status.live.id,
            provider=status.settings.provider,
            region=stuck.key.region,
            decrement=given_up,
            precondition="never-joined",
            policy="stuck-instance",
            because=f"launched {age} ago and still no node: {then}",
        )
        builder.begin_removal(
            Removal(key=stuck.key, node=None, instance=instance.id, actions=(action,))
        )


def _hold_hidden(builder: PlanBuilder) -> None:
    """Note which pod keeps instances that never joined, and orphans that are no node."""
    hidden = builder.view.inventory.hidden
    if hidden is None:
        return
    detail = f"pod {hidden.pod.key} runs on node {hidden.pod.node_name}, which is not listed"
    for instance in hidden.instances:
        builder.hold(UNLISTED_NODE, instance=instance, detail=detail)

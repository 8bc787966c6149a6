"""Method: replaces nodes that have not been Ready for `unready_time` (docs/scale-in.md)."""

from collections.abc import Mapping

from reconciler.model.actions import AnyAction, DeleteNode, TerminateInstance
from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetId, FleetKey, Region
from reconciler.model.text import duration
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.builder_values import Removal
from reconciler.planner.demand import FLEET
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.nodes import (
    replacement_blocker,
    silent_since,
    termination_protection,
)
from reconciler.planner.disruption.limits.ends_in_outages import OUTAGE, EndsInOutages
from reconciler.planner.disruption.limits.removals import target_may_fall
from reconciler.planner.fleets.instances.stuck_ends import STUCK_CAP
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.outages import find_outages
from reconciler.planner.view import ClusterView


def propose(builder: PlanBuilder) -> None:
    """Delete Node objects without an instance, and end instances whose node does not answer."""
    view = builder.view
    inventory = view.inventory
    outages = EndsInOutages(builder, _outages(view))
    for node in view.nodes.values():
        key = None if node.ready else inventory.fleet_of_node.get(node.name)
        if key is None or _is_left_to_others(view, node, key):
            continue
        since = silent_since(view, node)
        if since is None:
            continue
        has_instance = node.name in inventory.instance_of_node
        why_not = outages.why_not(node, key.region, since) if has_instance else ""
        if why_not:
            builder.block(node, "not-ready", why_not)
            builder.hold(OUTAGE, node.name, detail=why_not)
        else:
            _resolve(builder, node, key, duration(view.at - since))
    _note_leftovers(builder)


def _is_left_to_others(view: ClusterView, node: Node, key: FleetKey) -> bool:
    """Return whether the node cannot be judged, or ends by another method: its drain or EC2."""
    inventory = view.inventory
    if node.unreadable or node.deleting or node.instance_id is None:
        return True
    if node.name in inventory.leaving or node.name in inventory.interrupted:
        return True
    return is_draining(node) and not inventory.is_unseen(node, key)


def _note_leftovers(builder: PlanBuilder) -> None:
    """Note Node objects of ours whose instance runs under another node."""
    view, inventory = builder.view, builder.view.inventory
    for machine, aliases in inventory.duplicate_nodes.items():
        for name in aliases:
            if FLEET in view.nodes[name].labels and name not in inventory.fleet_of_node:
                why = f"its instance is the node {machine}: this Node is a leftover, delete it"
                builder.block(view.nodes[name], "unreadable", why)


def _outages(view: ClusterView) -> Mapping[Region, str]:
    """Return the regions in which no silent node is ended because too many are silent, and why.

    Until a second full list agrees, the safety stop holds them all. Nodes that never took a pod,
    and those of a version whose rolling update is halted, are no sign of an outage by themselves.
    """
    if view.snapshot.cluster.relists < 2:
        return {}
    owners, leaving = view.inventory.fleet_of_node.items(), view.inventory.leaving
    ours = ((key.region, view.nodes[name]) for name, key in owners if name not in leaving)
    halted = (update for update in view.inventory.updates.values() if update.halted)
    of_halted = frozenset(node.name for update in halted for node in update.new)
    doubted = of_halted | view.inventory.stuck_nodes
    others = (node for name, node in view.nodes.items() if name not in view.inventory.fleet_of_node)
    instances = view.inventory.instance_of_node
    return find_outages(ours, instances, view.at, view.settings, doubted, others)


def _resolve(builder: PlanBuilder, node: Node, key: FleetKey, spent: str) -> None:
    """Delete the Node object or end its instance; neither while its fleet is out of reach.

    Args:
        builder: The plan.
        node: The node.
        key: Its fleet.
        spent: For how long the node has not been Ready, in words.
    """
    view = builder.view
    instance = view.inventory.instance_of_node.get(node.name)
    if instance is None:
        if view.inventory.is_unseen(node, key) and not view.statuses[key].out_of_reach:
            _remove(builder, node, key, _deletion(view, node, key, spent))
        return
    if view.statuses[key].out_of_reach:
        return  # no fleet would launch another
    blocker = _instance_blocker(builder, node, instance, key)
    if blocker is not None:
        because = f"not Ready for {spent}, but {blocker.detail}"
        builder.block(node, blocker.code, because, blocker.until)
        return
    if node.name in view.inventory.stuck_nodes and not builder.stuck_ends.take(instance.id):
        builder.hold(STUCK_CAP, node=node.name)
        return
    _remove(builder, node, key, _termination(builder, node, instance, key, spent))


def _deletion(view: ClusterView, node: Node, key: FleetKey, spent: str) -> DeleteNode:
    """Return the action for a Node object whose instance is gone."""
    return DeleteNode(
        node=node.name,
        uid=node.uid,
        instance=node.instance_id,
        provider=view.statuses[key].settings.provider,
        region=key.region,
        policy="stuck-instance",
        because=f"not Ready for {spent}, and its instance is gone",
    )


def _termination(
    builder: PlanBuilder, node: Node, instance: Instance, key: FleetKey, spent: str
) -> TerminateInstance:
    """Return the action for an instance whose node does not answer.

    The target falls with it only where no other is to be launched in its place.
    """
    status, update = builder.view.statuses[key], builder.view.inventory.updates.get(key)
    given_up = update is not None and node in update.new and target_may_fall(builder, key)
    then = "its fleet launches another, unless its target is lowered"
    if given_up:
        then = "its fleet's rolling update is halted, and no other is launched in its place"
    text = f"not Ready for {spent}"
    if node.name in builder.view.inventory.stuck_nodes:
        text = f"not Ready since its start {spent} ago"
    return TerminateInstance(
        instance=instance.id,
        node=node.name,
        fleet=key.name,
        fleet_id=instance.fleet_id or (status.live.id if status.live else FleetId("")),
        provider=status.settings.provider,
        region=key.region,
        decrement=given_up,
        precondition="not-ready",
        policy="stuck-instance",
        because=f"{text} while its instance is {instance.state}: {then}",
    )


def _instance_blocker(
    builder: PlanBuilder, node: Node, instance: Instance, key: FleetKey
) -> Blocker | None:
    """Return why the instance must not be ended; None if it may be.

    Its group may end none for a time, as during an instance refresh, or it is protected.
    """
    status = builder.view.statuses[key]
    if status.live is not None and status.may_end_nothing:
        return Blocker("fleet-busy", status.live.removals_halted)
    refused = termination_protection(builder.view, instance.id)
    if refused is not None:
        return refused
    kept = replacement_blocker(builder, node, key)
    return None if kept is None else Blocker("may-still-run", kept.detail)


def _remove(builder: PlanBuilder, node: Node, key: FleetKey, action: AnyAction) -> None:
    removal = Removal(key=key, node=node.name, instance=node.instance_id, actions=(action,))
    builder.begin_removal(removal)

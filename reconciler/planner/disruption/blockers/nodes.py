"""Why a node may not be disrupted: one ordered list that every method asks before it ends a node.

Whether a pod may be moved is decided in `planner.rules`. Limits over several nodes (budgets,
minima, how many at once) are asked by the method that has them.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, InstanceId
from reconciler.model.text import duration, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.fleets.instances.protected_instances import EMPTY_WAITS, PODS_STAY
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.nodes.starting import unready_since, unready_time_ends_at
from reconciler.planner.rules import Judge, first_irreplaceable, forbidding, judge_of
from reconciler.planner.view import ClusterView

PROTECTED: Final = "protected"
TERMINATION_PROTECTED: Final = "termination-protected"


def instance_protection(instance: Instance | None) -> Blocker | None:
    """Return what protects the instance; None if nothing does, or if there is no instance."""
    if instance is not None and instance.set_aside:
        return Blocker(PROTECTED, "its instance is in standby, or is being detached")
    if instance is not None and instance.protected:
        return Blocker(PROTECTED, "its instance is protected from scale-in")
    return None


def termination_protection(
    view: ClusterView, instance: InstanceId | None, *, has_pods: bool = False
) -> Blocker | None:
    """Return a blocker after EC2 has refused to end the instance, until it is to be asked again.

    Args:
        view: The facts.
        instance: The instance.
        has_pods: Whether pods would have to move first.
    """
    refused_at = view.refused_ends.get(instance) if instance is not None else None
    if refused_at is None:
        return None
    until = refused_at + (PODS_STAY if has_pods else EMPTY_WAITS)
    if until <= view.at:
        return None
    detail = (
        "EC2 does not end its instance, which is protected from termination; not tried again "
        f"before {rfc3339(until)} (aws ec2 modify-instance-attribute "
        f"--no-disable-api-termination --instance-id {instance})"
    )
    return Blocker(TERMINATION_PROTECTED, detail, until)


def silent_since(view: ClusterView, node: Node) -> datetime | None:
    """Return since when a node is not Ready that may be replaced for that; None for any other."""
    if node.ready:
        return None
    instance = view.inventory.instance_of_node.get(node.name)
    ends = unready_time_ends_at(node, instance, view.at, view.settings)
    return None if ends is None or ends > view.at else unready_since(node, instance)


def protection(view: ClusterView, node: Node) -> Blocker | None:
    """Return the protection of the node or of its instance; None if there is none."""
    stated = stated_protection(view, node)
    if stated is not None or node.instance_id not in view.refused_ends:
        return stated
    has_pods = node.name in view.nodes_in_use
    return termination_protection(view, node.instance_id, has_pods=has_pods)


def stated_protection(view: ClusterView, node: Node) -> Blocker | None:
    """Return the protection by an annotation or by an attribute of the instance; None if none.

    Unlike `protection` this does not count a refusal of EC2 to end the instance.
    """
    found = forbidding(node.annotations)
    if found:
        return Blocker(PROTECTED, f"it is annotated {found}")
    return instance_protection(view.inventory.instance_of_node.get(node.name))


def unreadable(node: Node) -> Blocker | None:
    """Return a blocker if the node has no instance, is being deleted or could not be decoded."""
    if node.unreadable or node.deleting or node.instance_id is None:
        return Blocker("unreadable", "it cannot be read or has no instance")
    return None


def _protected(view: ClusterView, node: Node, _status: FleetStatus) -> Blocker | None:
    return protection(view, node)


def _unreadable(_view: ClusterView, node: Node, _status: FleetStatus) -> Blocker | None:
    return unreadable(node)


def _fleet_missing(_view: ClusterView, _node: Node, status: FleetStatus) -> Blocker | None:
    """Return a blocker while EC2 does not show the node's fleet, or does not answer for it."""
    if not status.out_of_reach:
        return None
    what = "have" if status.silent_since is None else "answer about"
    why = f"EC2 does not {what} its fleet: its target cannot be lowered"
    return Blocker("fleet-missing", why)


def _removals_halted(_view: ClusterView, _node: Node, status: FleetStatus) -> Blocker | None:
    """Return a blocker while none of the fleet's instances may be ended."""
    live = status.live
    return Blocker("fleet-busy", live.removals_halted) if live and live.removals_halted else None


def _not_ready(view: ClusterView, node: Node, _status: FleetStatus) -> Blocker | None:
    if node.ready:
        return None
    instance = view.inventory.instance_of_node.get(node.name)
    until = unready_time_ends_at(node, instance, view.at, view.settings)
    if until is None or until <= view.at:
        return Blocker("not-ready", "it is not Ready")
    after = f"unready_time ({duration(timedelta(seconds=view.settings.unready_seconds))})"
    return Blocker("not-ready", f"it is not Ready; after {after} it may be replaced", until)


def _unseen(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """Return a blocker while EC2 does not show the node's instance."""
    if not view.inventory.is_unseen(node, status.key):
        return None
    return Blocker("unreadable", f"EC2 does not show its instance {node.instance_id}")


def _duplicate(view: ClusterView, node: Node, _status: FleetStatus) -> Blocker | None:
    return kept_by_duplicate(view, node)


BLOCKERS = (
    _protected,
    _unreadable,
    _fleet_missing,
    _removals_halted,
    _not_ready,
    _unseen,
    _duplicate,
)
"""Everything about the node itself that can keep it; the first that applies is shown."""


def first_blocker(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """Return the first of `BLOCKERS` that applies; None if nothing about the node keeps it."""
    for blocker in BLOCKERS:
        found = blocker(view, node, status)
        if found is not None:
            return found
    return None


def cannot_end(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """Return why the node's instance cannot be ended now, regardless of its pods; None if it can.

    While it cannot be ended no pod is moved either. A drain that began earlier shows this blocker
    until it is given back.
    """
    if node.instance_id is None:
        return Blocker("unreadable", "it has no instance")
    return (
        _fleet_missing(view, node, status)
        or _removals_halted(view, node, status)
        or _unseen(view, node, status)
    )


def kept_by_duplicate(view: ClusterView, node: Node) -> Blocker | None:
    """Return a blocker while pods run on the instance under another node name; None if none do.

    A pod that is being deleted does not count if its node is not Ready: it may stay there forever.
    """
    for name in view.inventory.duplicate_nodes.get(node.name, ()):
        answers = view.nodes[name].ready
        for pod in counted(view.pods_on.get(name, ())):
            if answers or not pod.deleting:
                why = f"{pod.key} runs on {name}, which has the same instance"
                return Blocker("unreadable", why)
    return None


def empty_node_blocker(
    view: ClusterView, judge: Judge, node: Node, status: FleetStatus
) -> Blocker | None:
    """Return what keeps a node without counted pods; limits over several nodes are not asked."""
    pods = view.pods_on.get(node.name, ())
    return first_blocker(view, node, status) or irreplaceable_pod(judge, pods)


def irreplaceable_pod(judge: Judge, pods: Iterable[Pod]) -> Blocker | None:
    """Return a blocker for the first pod that must not end with the node; None if there is none.

    Such a pod need not count otherwise, so that the node may have no other pod.
    """
    found = first_irreplaceable(judge, pods)
    if found is None:
        return None
    pod, ruling = found
    return Blocker(PROTECTED, f"{pod.key}: {ruling.reason}", ruling.until)


def replacement_blocker(builder: PlanBuilder, node: Node, key: FleetKey) -> Blocker | None:
    """Return why a node that is not Ready must not be replaced yet; None if it may be.

    A kubelet may only have lost its connection while its pods go on. Pods that Kubernetes has begun
    to delete, as it does five minutes after a kubelet fell silent, no longer keep the node.
    """
    view = builder.view
    protected = stated_protection(view, node)
    if protected is not None:
        return protected
    terms = terms_of(view.statuses[key].settings.scale_in)
    judge = judge_of(terms, builder.budgets.coverage, view.at)
    names = (node.name, *view.inventory.duplicate_nodes.get(node.name, ()))
    pods = [pod for name in names for pod in view.pods_on.get(name, ())]
    kept = first_irreplaceable(judge, pods)
    if kept is None:
        return None
    return Blocker("may-still-run", f"{kept[0].key} may still run there: {kept[1].reason}")

"""Why a node may not be disrupted: one ordered list, asked by every policy that ends nodes.

What a node's pods say about being moved is in `planner.rules`; limits over several nodes (budgets,
minima, how many at once) are asked by the policy that has them.
"""

from collections.abc import Iterable, Iterator

from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Instance
from reconciler.planner.disruption.blockers.blocker import Blocker
from reconciler.planner.disruption.drains.idleness import kept_by_duplicate
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.rules import Judge, first_irreplaceable, forbidding
from reconciler.planner.view import ClusterView


def instance_protection(instance: Instance | None) -> Blocker | None:
    """What protects the instance; None when nothing does, or when there is none."""
    if instance is not None and instance.protected:
        return Blocker("protected", "its instance is protected from scale-in")
    return None


def protection(view: ClusterView, node: Node, instance: Instance | None = None) -> Blocker | None:
    """What somebody has said to protect the node; None when nothing.

    Args:
        view: The facts.
        node: The node.
        instance: Its instance where the inventory does not know it, as that of a lost fleet.
    """
    found = forbidding(node.annotations)
    if found:
        return Blocker("protected", f"it is annotated {found}")
    return instance_protection(instance or view.inventory.instance_of_node.get(node.name))


def unreadable(node: Node) -> Blocker | None:
    """Why nothing can be said of the node; None when it can be read."""
    if node.unreadable or node.deleting or node.instance_id is None:
        return Blocker("unreadable", "it cannot be read or has no instance")
    return None


def blockers(view: ClusterView, node: Node, status: FleetStatus) -> Iterator[Blocker]:
    """Everything about the node itself that keeps it, the first of them counts."""
    found = protection(view, node)
    if found is not None:
        yield found
    found = unreadable(node)
    if found is not None:
        yield found
    if status.out_of_reach:
        what = "have" if status.silent_since is None else "tell of"
        detail = f"EC2 does not {what} its fleet: its target cannot be lowered"
        yield Blocker("fleet-missing", detail)
    if not node.ready:
        yield Blocker("not-ready", "it is not Ready")
    if view.inventory.is_unseen(node, status.key):
        yield Blocker("unreadable", f"EC2 does not show its instance {node.instance_id}")
    twin = kept_by_duplicate(view, node)
    if twin:
        yield Blocker("unreadable", twin)


def first_blocker(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """The first of `blockers`; None when nothing about the node itself keeps it."""
    return next(blockers(view, node, status), None)


def irreplaceable_pod(judge: Judge, pods: Iterable[Pod]) -> Blocker | None:
    """The first pod that must not end with the node, though it may not keep it by itself."""
    found = first_irreplaceable(judge, pods)
    if found is None:
        return None
    pod, ruling = found
    return Blocker("protected", f"{pod.key}: {ruling.reason}")

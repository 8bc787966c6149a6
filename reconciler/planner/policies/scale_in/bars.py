"""What forbids a node's voluntary end: the node itself, then its pods one by one."""

from collections.abc import Iterable

from reconciler.model.cluster import Node, Pod
from reconciler.planner.cycle import Cycle
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.leaving.idleness import kept_by_twin
from reconciler.planner.leaving.moves import waits_for_its_end
from reconciler.planner.rules import Judge, Ruling, Verdict, first_irreplaceable, forbidding

Bar = tuple[str, str]
"""A code and a sentence."""

IN_USE: Bar = ("in-use", "pods of nodes that leave come here")
NEEDED_BACK: Bar = ("demand", "demand with its over-subscription would need it back")


def at_minimum(status: FleetStatus) -> Bar:
    """The fleet cannot do without one more node."""
    return "min-capacity", f"the fleet is at its min_capacity of {status.min}"


def bar(cycle: Cycle, node: Node, status: FleetStatus) -> Bar | None:
    """What forbids to remove the node, whatever its idle time."""
    found = forbidding(node.annotations)
    if found:
        return "protected", f"it is annotated {found}"
    instance = cycle.inventory.instance_of_node.get(node.name)
    if instance is not None and instance.protected:
        return "protected", "its instance is protected from scale-in"
    if node.unreadable or node.deleting or node.instance_id is None:
        return "unreadable", "it cannot be read or has no instance"
    if status.out_of_reach:
        what = "have" if status.silent_since is None else "tell of"
        return "fleet-missing", f"EC2 does not {what} its fleet: its target cannot be lowered"
    if not node.ready:
        return "not-ready", "it is not Ready"
    unsure = _unsure(cycle, node, status)
    return ("unreadable", unsure) if unsure else None


def _unsure(cycle: Cycle, node: Node, status: FleetStatus) -> str:
    """Why nobody can tell what would end with the node's instance; empty when one can."""
    if cycle.inventory.is_unseen(node, status.key):
        return f"EC2 does not show its instance {node.instance_id}"
    return kept_by_twin(cycle, node)


def pod_bar(rulings: Iterable[tuple[Pod, Ruling]]) -> Bar | None:
    """The first pod that may not be moved, and why."""
    for pod, ruling in rulings:
        if ruling.verdict is Verdict.BLOCK:
            return _pod_bar(pod, ruling)
    return None


def movable(judge: Judge, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod], Bar | None]:
    """The pods that have to move, and those that come again; or none, and the first that may not.

    A node is asked about with every plan: the first answer that bars it is the last one asked for.
    """
    moving: list[Pod] = []
    again: list[Pod] = []
    for pod in pods:
        ruling = judge.ruling(pod)
        if ruling.verdict is Verdict.BLOCK:
            return [], [], _pod_bar(pod, ruling)
        if ruling.verdict is Verdict.OK:
            moving.append(pod)
        elif comes_again(pod, ruling):
            again.append(pod)
    return moving, again, None


def comes_again(pod: Pod, ruling: Ruling) -> bool:
    """Whether it is stopping and its successor comes when it is gone: nobody else shows that one.

    Without a place kept for it another node would be ended, and one bought for it.
    """
    return ruling.verdict is Verdict.WAIT and waits_for_its_end(pod)


def _pod_bar(pod: Pod, ruling: Ruling) -> Bar:
    return ruling.code, f"{pod.key}: {ruling.reason}"


def bystander_bar(judge: Judge, pods: list[Pod]) -> Bar | None:
    """What speaks against the end of pods that do not keep a node by themselves."""
    found = first_irreplaceable(judge, pods)
    return None if found is None else ("protected", _pod_bar(*found)[1])

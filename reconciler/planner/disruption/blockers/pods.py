"""Blockers outside the node itself: its fleet's minimum, pods of other nodes, its own pods."""

from collections.abc import Iterable

from reconciler.model.cluster import Pod
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.simulator.relocation import waits_for_its_end
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.rules import Judge, Ruling, Verdict

IN_USE = Blocker("in-use", "pods of nodes that are to be removed will run here")
NEEDED_BACK = Blocker("demand", "demand with its over-subscription would need it back")


def at_minimum(status: FleetStatus) -> Blocker:
    """Return the blocker of a node without which its fleet would be below its minimum."""
    if status.min > status.settings.min_capacity:
        return Blocker("min-capacity", f"its group is at its minimum size of {status.min}")
    return Blocker("min-capacity", f"the fleet is at its min_capacity of {status.min}")


def blocking_pod(rulings: Iterable[tuple[Pod, Ruling]]) -> Blocker | None:
    """Return the blocker of the first pod that may not be moved; None when all may."""
    for pod, ruling in rulings:
        if ruling.verdict is Verdict.BLOCK:
            return _pod_blocker(pod, ruling)
    return None


def movable(judge: Judge, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod], Blocker | None]:
    """Return the pods to move and the pods that will be recreated (`comes_again`), or a blocker.

    The tuple is (to move, to be recreated, blocker); both lists are empty if there is a blocker. It
    is asked for every node in every plan, so it stops at the first pod that may not be moved.
    """
    moving: list[Pod] = []
    again: list[Pod] = []
    for pod in pods:
        ruling = judge.ruling(pod)
        if ruling.verdict is Verdict.BLOCK:
            return [], [], _pod_blocker(pod, ruling)
        if ruling.verdict is Verdict.OK:
            moving.append(pod)
        elif comes_again(pod, ruling):
            again.append(pod)
    return moving, again, None


def comes_again(pod: Pod, ruling: Ruling) -> bool:
    """Return whether the pod is being deleted and its successor is created only after its end.

    It needs a reserved place: without one, another node could be removed now and a node bought
    again when the successor is pending.
    """
    return ruling.verdict is Verdict.WAIT and waits_for_its_end(pod)


def _pod_blocker(pod: Pod, ruling: Ruling) -> Blocker:
    return Blocker(ruling.code, f"{pod.key}: {ruling.reason}", ruling.until)

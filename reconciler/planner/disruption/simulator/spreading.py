"""Where kube-scheduler puts pods that move: on the node with the most room, not on the fullest."""

from collections.abc import Mapping, Sequence

import numpy as np

from reconciler.model.actions import UNNEEDED_TAINT
from reconciler.model.cluster import Taint
from reconciler.planner.disruption.simulator.relocation import Relocation, waits_for_its_end
from reconciler.planner.placement.arrays import BoolArray, FloatArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import MOVES, Simulation
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from reconciler.planner.view import ClusterView

SPREAD_PODS_MAX = 200
"""How many pods of earlier moves are placed again.

If hundreds of nodes with pods may be drained at once, only the last moves are.
"""
_LAST = 3.0
"""Subtracted from the share of free room of the rows with the most soft taints, and in proportion
from others. By the weights of kube-scheduler's default profile these count three times as much as
all of a node's room, and more than any single preference of a pod."""
_FULL = 100.0
"""The highest score that one plugin of kube-scheduler gives, as `Preferences` counts them."""
SoftTaints = Mapping[int, Sequence[Taint]]
"""Taints by row that kube-scheduler only avoids, except ours."""


def soft_taints_of_others(view: ClusterView) -> SoftTaints:
    """Return the PreferNoSchedule taints of nodes by row, except ours."""
    found = {
        view.row_of[name]: [
            t for t in node.taints if t.effect == "PreferNoSchedule" and t.key != UNNEEDED_TAINT
        ]
        for name, node in view.nodes.items()
        if node.taints
    }
    return {row: taints for row, taints in found.items() if taints}


def latest(begun: Sequence[Relocation]) -> list[Relocation]:
    """Return the last moves, as many as can be placed again in a short time, in their order."""
    relocations: list[Relocation] = []
    pods = 0
    for moves in reversed(begun):
        pods += sum(len(members) for _, members in moves.groups)
        if pods > SPREAD_PODS_MAX:
            break
        relocations.append(moves)
    return relocations[::-1]


def orders_of_arrival(moved: Sequence[Relocation], budgets: BudgetLedger) -> list[list[PodClass]]:
    """Return the different orders in which the classes of these pods may reach kube-scheduler.

    They are: as evicted, in rounds if budgets ask for them; with StatefulSets' pods, which wait for
    the end of their predecessors, after the others; and by priority, if several are pending. Empty
    if all pods are of one class, as each node takes as many of them in any order.
    """
    if len({c.number for relocation in moved for c, _ in relocation.groups}) < 2:
        return []
    evicted = [pod for relocation in moved for pod in relocation.as_evicted(budgets)]
    at_once = [c for pod, c in evicted if not waits_for_its_end(pod)]
    in_time = [*at_once, *(c for pod, c in evicted if waits_for_its_end(pod))]
    orders = [[c for _, c in evicted], in_time, sorted(in_time, key=_lowest_last)]
    return [order for n, order in enumerate(orders) if order not in orders[:n]]


def spread_over(
    sim: Simulation,
    moved: Sequence[Relocation],
    classes: Sequence[PodClass],
    among: BoolArray,
    tainted: Sequence[int],
    foreign: SoftTaints,
    preferences: Preferences | None = None,
) -> list[int]:
    """Remove what was moved, and place pods of these classes one after the other.

    Each goes to the row with the largest share of free CPU and memory that takes it. Rows with our
    soft taint, or with more of those of others that it does not tolerate, come after all others.

    Args:
        sim: The what-if cluster, which is changed.
        moved: Moves that were made in it.
        classes: The pods' classes, in the order in which they are placed.
        among: The rows that may take them.
        tainted: The rows with the soft taint.
        foreign: Soft taints of others.
        preferences: What pods prefer beside that; None to leave it out.

    Returns:
        Where they went, up to the first that fits nowhere.
    """
    for moves in moved:
        for pod_class, row, amount in moves.amounts():
            sim.place(pod_class, np.array([row]), np.array([-amount]))
    rows: list[int] = []
    allocatable = np.maximum(sim.allocatable[:, :CPU_AND_MEMORY], 1)
    ours = np.zeros(sim.rows)
    ours[list(tainted)] = 1
    share = (sim.free[:, :CPU_AND_MEMORY] / allocatable).mean(axis=1)
    for pod_class in classes:
        takes = among & (sim.room(pod_class, MOVES) > 0)
        disliked = ours
        if foreign:
            disliked = ours + _not_tolerated(pod_class, foreign, sim.rows)
            disliked /= disliked[takes].max(initial=1)
        liked = share - _LAST * disliked
        if preferences is not None and preferences.matter([pod_class]):
            wanted = preferences.scores(pod_class) / _FULL
            liked += np.pad(wanted, (0, sim.rows - len(wanted)))
        chosen = int(np.where(takes, liked, -np.inf).argmax())
        if not takes[chosen]:
            break
        sim.place(pod_class, np.array([chosen]), np.ones(1, dtype=np.int64))
        share[chosen] = (sim.free[chosen, :CPU_AND_MEMORY] / allocatable[chosen]).mean()
        rows.append(chosen)
    return rows


def fit_spread(
    sim: Simulation,
    moved: Sequence[Relocation],
    classes: Sequence[PodClass],
    *,
    among: BoolArray,
    tainted: Sequence[int],
    foreign: SoftTaints,
) -> bool:
    """Return whether `spread_over` finds a place for each; nothing is changed."""
    mark = sim.fork()
    rows = spread_over(sim, moved, classes, among, tainted, foreign)
    sim.revert(mark)
    return len(rows) == len(classes)


def _not_tolerated(pod_class: PodClass, foreign: SoftTaints, rows: int) -> FloatArray:
    """Return for each of the rows how many of these taints the pods do not tolerate."""
    known, off = pod_class.spec.tolerations, np.zeros(rows)
    for row, taints in foreign.items():
        off[row] = sum(
            not any(toleration.tolerates(taint) for toleration in known) for taint in taints
        )
    return off


def _lowest_last(pod_class: PodClass) -> int:
    """Return the sort key by which kube-scheduler takes pending pods."""
    return -pod_class.spec.priority

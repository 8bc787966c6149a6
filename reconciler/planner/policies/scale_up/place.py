"""Placing demand on rows that are there: nominated nodes, nodes, launching capacity."""

import numpy as np

from reconciler.planner.cycle import Cycle, WaitingClass
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.fill import fill, tightness


def place_on_nominated(cycle: Cycle) -> None:
    """A pod with a nominated node has preempted its room there: the room is taken already."""
    one = np.ones(1, dtype=np.int64)
    for waiting in cycle.waiting:
        nominated = [p for p in waiting.pods if p.nominated_node_name in cycle.row_of]
        if not nominated:
            continue
        waiting.pods = nominated + [p for p in waiting.pods if p not in nominated]
        for pod in nominated:
            if pod.nominated_node_name is not None:
                row = cycle.row_of[pod.nominated_node_name]
                cycle.sim.place(waiting.pod_class, np.array([row], dtype=np.int64), one)
                cycle.promise(waiting, row, 1)


def place_on_existing(cycle: Cycle) -> None:
    """Nodes first, then launching capacity, each class in order of priority and size."""
    seated = np.zeros(cycle.sim.rows, dtype=np.bool_)
    seated[list(cycle.seats)] = True
    order = tightness(cycle.sim)
    for waiting in cycle.waiting:
        fill_class(cycle, waiting, ~seated, order)
        fill_class(cycle, waiting, seated, order)


def fill_class(cycle: Cycle, waiting: WaitingClass, among: BoolArray, order: IntArray) -> None:
    """Promise as many of the class's pods as rows of `among` take."""
    if waiting.left and among.any():
        for row, amount in fill(cycle.sim, waiting.pod_class, waiting.left, among, order):
            cycle.promise(waiting, row, amount)

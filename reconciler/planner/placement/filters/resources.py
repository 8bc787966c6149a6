"""NodeResourcesFit, NodePorts and NodeVolumeLimits: sums that must stay within what a row offers.

Source: kube-scheduler plugins/noderesources/fit.go: only what a pod asks for is looked at, so a
row overcommitted in memory still takes a pod without memory requests.
"""

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, IntArray

CPU_AND_MEMORY = 2
"""The first two columns are CPU and memory: the ones that over-subscription inflates."""
WHOLE = 10_000
"""Over-subscription is in ten-thousandths, which is exact enough."""


def charged(requests: IntArray, offers: IntArray, over_subscription: IntArray) -> IntArray:
    """Return what one pod takes of each row: its requests, inflated on new capacity.

    The inflation is capped at what the row offers, so that a pod that fits on a node alone still
    does (docs/scale-up.md).
    """
    taken = np.broadcast_to(requests, offers.shape)
    if not np.count_nonzero(over_subscription):
        return taken
    taken = taken.copy()
    head = slice(0, CPU_AND_MEMORY)
    factor = (WHOLE + over_subscription)[:, None]
    # Whole multiples and the remainder separately: the product of large requests exceeds 64 bits.
    times, rest = np.divmod(requests[None, head], WHOLE)
    inflated = times * factor - (-(rest * factor) // WHOLE)
    capped = np.maximum(np.minimum(inflated, offers[:, head]), requests[None, head])
    taken[:, head] = capped
    return taken


def most_over_subscription(
    requests: IntArray, counts: IntArray, offered: IntArray, over_subscription: int
) -> int:
    """Return the highest over-subscription, up to the given one, with which a node takes all pods.

    Args:
        requests: (classes, dimensions) of a pod each.
        counts: (classes,) pods.
        offered: What the node offers.
        over_subscription: In ten-thousandths.
    """
    over = np.array([over_subscription], dtype=np.int64)
    taken = np.concatenate([charged(row, offered[None, :], over) for row in requests])
    most = over_subscription
    for column in range(CPU_AND_MEMORY):
        if _sum(taken[:, column], counts) > int(offered[column]):
            total = _sum(requests[:, column], counts)
            # The charge of each pod is rounded up to a whole number.
            rest = max(0, int(offered[column]) - int(counts.sum()))
            most = max(0, min(most, rest * WHOLE // max(1, total) - WHOLE))
    return most


def _sum(amounts: IntArray, counts: IntArray) -> int:
    return sum(a * n for a, n in zip(amounts.tolist(), counts.tolist(), strict=True))


def room(
    free: IntArray,
    offers: IntArray,
    over_subscription: IntArray,
    requests: IntArray,
    columns: IntArray,
) -> IntArray:
    """Return how many pods with these requests each row still takes."""
    if not len(columns):
        return np.full(len(free), UNLIMITED, dtype=np.int64)
    if np.count_nonzero(over_subscription):
        taken = charged(requests, offers, over_subscription)[:, columns]
        slots: IntArray = (free[:, columns] // taken).min(axis=1)
    else:
        slots = free[:, columns[0]] // requests[columns[0]]
        for column in columns[1:]:
            np.minimum(slots, free[:, column] // requests[column], out=slots)
    return np.asarray(np.maximum(slots, 0))

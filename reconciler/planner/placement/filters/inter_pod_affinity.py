"""InterPodAffinity: required affinity and anti-affinity, including that of existing pods.

Source: kube-scheduler plugins/interpodaffinity/filtering.go. A node without the topology label
satisfies anti-affinity and fails affinity; the first pod of a group that matches its own terms may
go anywhere.
"""

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, IntArray
from reconciler.planner.placement.links import Links


def anti_affinity_room(links: Links, room: IntArray) -> IntArray:
    """Return `room` limited by the class's own anti-affinity and by that of existing pods."""
    for counter, itself in links.anti:
        counted = counter.over_choices(counter.at_rows(), "most")
        most = np.where(counter.topology.domain >= 0, 1, UNLIMITED) if itself else UNLIMITED
        room = np.where(counted > 0, 0, np.minimum(room, most))
    for held in links.held_against:
        if held.total:
            counted = held.over_choices(held.at_rows(), "most")
            room = np.where(counted > 0, 0, room)
    return room


def affinity_room(links: Links, room: IntArray) -> IntArray:
    """Return `room` limited to domains with a pod of the group, or to any for the first pod."""
    if not links.affinity:
        return room
    if links.lacks_neighbour:
        return np.zeros_like(room)
    first = links.affinity_itself and not any(c.total for c in links.affinity)
    for counter in links.affinity:
        labelled = counter.topology.domain >= 0
        if first:
            room = np.where(labelled, room, 0)
        else:
            counted = counter.over_choices(counter.at_rows(), "least")
            room = np.where(labelled & (counted > 0), room, 0)
    return room

"""The room that limited offers still have while pods are dealt to places."""

from collections.abc import Sequence
from copy import copy

import numpy as np

from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import take_in_order
from reconciler.planner.placement.filters import resources
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import Simulation

NODES_MAX = 250
"""The most nodes of an offer that are simulated; if more may be bought, it counts as unlimited."""
LOOKED_AT_MAX = 1_000_000
"""The most nodes that are examined for one purchase; after that all offers count as unlimited."""
LOOK_LEAST = 50
"""What one examination costs at least, in nodes."""


class LimitedRoom:
    """The nodes that may be bought of limited offers, filled by first fit, the cheapest first.

    Offers that have a node for every pod are not limited. Places are compared by this estimate; the
    packing that follows does not depend on it.
    """

    def __init__(self, sim: Simulation, offers: Sequence[Offer], pods: int) -> None:
        """Start empty, for a purchase for `pods` pods."""
        self._sim = sim
        self._offers = offers
        self._limited = {i for i, offer in enumerate(offers) if offer.most < pods}
        prices = np.array([offer.compared_nano_usd for offer in offers], dtype=np.int64)
        self._order = np.argsort(prices, kind="stable")
        self._free: dict[int, IntArray] = {}
        """(nodes, dimensions) by limited offer, filled when first asked for."""
        self._apart: dict[tuple[int, int], BoolArray] = {}
        """(nodes,) by rule and offer: nodes with a pod that shares none with others of the rule."""
        self._looked_at = [0]

    def __bool__(self) -> bool:
        return bool(self._limited)

    def copy(self) -> "LimitedRoom":
        """Return a copy to be filled on trial; both count what is examined."""
        other: LimitedRoom = copy(self)
        other._free, other._apart = self._free.copy(), self._apart.copy()
        return other

    def cheapest(self, pod_class: PodClass, allowed: BoolArray) -> int | None:
        """Return the price of the cheapest offer with room for one more pod of the class."""
        numbers: list[int] = self._order[allowed[self._order]].tolist()
        for index in numbers:
            if index not in self._limited or self._room(pod_class, index).any():
                return self._offers[index].compared_nano_usd
        return None

    def take(self, pod_class: PodClass, count: int, allowed: BoolArray) -> int:
        """Put up to `count` pods of the class on the offers; return how many find room."""
        if not self._limited:
            return count if allowed.any() else 0
        left = count
        for index in self._order[allowed[self._order]].tolist():
            if left <= 0 or index not in self._limited:
                return count
            left -= self._fill(pod_class, left, index)
        return count - left

    def _fill(self, pod_class: PodClass, count: int, index: int) -> int:
        room = self._room(pod_class, index)
        rows, amounts = take_in_order(room, np.arange(len(room)), count)
        if len(rows) and index in self._free:
            free = self._free[index].copy()
            free[rows] -= self._needs(pod_class, index) * amounts[:, None]
            self._free[index] = free
            for rule in self._apart_by(pod_class):
                held = self._apart.get((rule, index), np.zeros(len(free), dtype=np.bool_)).copy()
                held[rows] = True
                self._apart[rule, index] = held
        return int(amounts.sum())

    def _room(self, pod_class: PodClass, index: int) -> IntArray:
        """Return (nodes,) how many pods each node of a limited offer still takes."""
        most = self._offers[index].most
        if most > NODES_MAX or self._looked_at[0] > LOOKED_AT_MAX:
            # One empty node stands for all of them.
            free = self._offers[index].vector[None, :]
            times = most
        else:
            if index not in self._free:
                self._free[index] = np.tile(self._offers[index].vector, (most, 1))
            free, times = self._free[index], 1
        self._looked_at[0] += max(len(free), LOOK_LEAST)
        columns = pod_class.columns
        room = np.full(len(free), UNLIMITED // most, dtype=np.int64)
        if len(columns):
            needs = self._needs(pod_class, index)[columns]
            room = np.maximum((free[:, columns] // needs).min(axis=1), 0)
        for rule in self._apart_by(pod_class):
            held = self._apart.get((rule, index))
            room = np.minimum(room, 1)
            if held is not None and len(held) == len(room):
                room[held] = 0
        return room * times

    def _needs(self, pod_class: PodClass, index: int) -> IntArray:
        """Return what a pod takes on a node of the offer."""
        offer = self._offers[index]
        over = np.array([offer.over_subscription], dtype=np.int64)
        return np.asarray(resources.charged(pod_class.requests, offer.vector[None, :], over)[0])

    def _apart_by(self, pod_class: PodClass) -> list[int]:
        """Return the rules by which a pod shares a node with no other that obeys them."""
        return [
            id(counter)
            for counter, itself in self._sim.links(pod_class).anti
            if itself and counter.topology.key == HOSTNAME
        ]

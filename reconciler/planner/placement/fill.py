"""Putting pods of a class onto existing rows: nodes, launching capacity, nodes given back."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, FloatArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import (
    Coordinates,
    SharedRules,
    assign,
    coordinates_of_rows,
    shared_keys,
)
from reconciler.planner.placement.filters import inter_pod_affinity
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.links import Links
from reconciler.planner.placement.simulation import DEMAND, Simulation, Terms
from reconciler.planner.placement.topology import uncertain_rows

_ROUNDS_MAX = 1_024
"""A hostname spread makes room as the emptiest rows fill, one pod on each in a round."""


def tightness(sim: Simulation) -> IntArray:
    """Return the rows in the order in which to fill them: the fullest first, then by name.

    Filling the fullest keeps others empty, so that they can leave.
    """
    return np.argsort(free_share(sim), kind="stable")


def free_share(sim: Simulation) -> FloatArray:
    """Return the free share of each row, by CPU or memory, whichever is smaller."""
    allocatable = np.maximum(sim.allocatable[:, :2], 1)
    share: FloatArray = (sim.free[:, :2] / allocatable).min(axis=1)
    return share


def take_in_order(room: IntArray, order: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return rows and amounts that take `count` pods, or all that fit, in this order of rows."""
    available = np.minimum(room[order], count)
    ends = np.cumsum(available)
    amounts = np.minimum(np.maximum(count - (ends - available), 0), available)
    used = amounts > 0
    return order[used], amounts[used]


def fill(
    sim: Simulation,
    pod_class: PodClass,
    count: int,
    among: BoolArray,
    order: IntArray,
    terms: Terms = DEMAND,
) -> list[tuple[int, int]]:
    """Place up to `count` pods on rows of `among`; return (row, amount) in the order of use."""
    links = sim.links(pod_class)
    if links.fits_nowhere or links.lacks_neighbour:
        return []
    filling = _Filling(sim, pod_class, links, shared_keys(links), order, terms)
    if filling.keys:
        return filling.in_rounds(count, among)
    return filling.rows(count, among)


class _Filling(NamedTuple):
    """Fills rows with pods of one class. Its methods return (row, amount) in the order of use."""

    sim: Simulation
    pod_class: PodClass
    links: Links
    """The rules of the class."""
    keys: tuple[str, ...]
    """The topology keys of rules by which rows share domains."""
    order: IntArray
    """Rows, in the order in which to fill them."""
    terms: Terms

    def in_rounds(self, count: int, among: BoolArray) -> list[tuple[int, int]]:
        """Fill the places of the keys; a spread over nodes lets one round open the next."""
        places = self._near if self.links.affinity else self._places
        by_hostname = any(rule.counter.topology.key == HOSTNAME for rule in self.links.spread)
        taken: list[tuple[int, int]] = []
        for _ in range(_ROUNDS_MAX if by_hostname else 1):
            parts = places(count, among)
            taken += parts
            count -= sum(amount for _, amount in parts)
            if count <= 0 or not parts:
                break
        return taken

    def rows(self, count: int, among: BoolArray) -> list[tuple[int, int]]:
        """Fill rows in order; the first pod of an affinity group is placed alone."""
        taken: list[tuple[int, int]] = []
        for _ in range(1 if self.links.plain else _ROUNDS_MAX):
            room = np.where(among, self.sim.room(self.pod_class, self.terms), 0)
            alone = self.links.affinity and not _group_exists(self.links)
            if alone:
                room = np.minimum(room, 1)
            rows, amounts = take_in_order(room, self.order, min(count, 1) if alone else count)
            if not len(rows):
                break
            self.sim.place(self.pod_class, rows, amounts)
            taken.extend(zip(rows.tolist(), amounts.tolist(), strict=True))
            count -= int(amounts.sum())
            if count <= 0:
                break
        return taken

    def _near(self, count: int, among: BoolArray) -> list[tuple[int, int]]:
        """Fill rows of known zones together, then the others one by one: each is its own zone.

        If all must share a node, the first pod determines it for the rest.
        """
        if count > 1 and self.links.shares_node and not _group_exists(self.links):
            first = self._near(1, among)
            return first + self._near(count - 1, among) if first else []
        unknown = np.zeros(self.sim.rows, dtype=np.bool_)
        for counter in self.links.affinity:
            unknown |= uncertain_rows(counter.topology)
        taken = self._places(count, among & ~unknown)
        count -= sum(amount for _, amount in taken)
        if count <= 0:
            return taken
        alone_in = among & unknown
        alone_in &= local_room(self.sim, self.pod_class, self.terms) > 0
        for row in self.order[alone_in[self.order]].tolist():
            if count <= 0:
                break
            alone = np.zeros(self.sim.rows, dtype=np.bool_)
            alone[row] = True
            parts = self._places(count, alone)
            taken += parts
            count -= sum(amount for _, amount in parts)
        return taken

    def _places(self, count: int, among: BoolArray) -> list[tuple[int, int]]:
        """Do what `fill_evenly` does, with the class's room on rows of `among`."""
        room = np.where(among, local_room(self.sim, self.pod_class, self.terms), 0)
        return fill_evenly(self.sim, self.pod_class, count, room, self.order, self.keys, self.terms)


def _group_exists(links: Links) -> bool:
    """Return whether any pod of the class's affinity group runs; the first determines the place."""
    return any(counter.total for counter in links.affinity)


def without_torn(
    sim: Simulation,
    pod_class: PodClass,
    count: int,
    among: BoolArray,
    elsewhere: Callable[[], int],
) -> BoolArray:
    """Return rows of `among` where the first pod of a group that must share a node may be placed.

    It determines the node of the rest: a row has to take all of them, or as many as a node
    `elsewhere` would. For other pods, for groups that run already, and if a spread limits how many
    may share a node, these are all rows.
    """
    links = sim.links(pod_class)
    if links.spread or not (links.shares_node and links.affinity_itself):
        return among
    if _group_exists(links):
        return among
    return among & (sim.room(pod_class) >= min(count, elsewhere()))


def local_room(sim: Simulation, pod_class: PodClass, terms: Terms = DEMAND) -> IntArray:
    """Return `Simulation.room` without the rules on how shared domains are filled."""
    room = sim.room_of_its_own(pod_class, terms)
    if terms.zone_assumed:  # the domains say whether anti-affinity holds in the assumed zone
        return sim.counter_room(sim.links(pod_class).only(HOSTNAME), room)
    return rules_room(sim, pod_class, room)


def rules_room(sim: Simulation, pod_class: PodClass, room: IntArray) -> IntArray:
    """Return `room` limited by rules between pods, except those on how shared domains are filled.

    Anti-affinity counts for any key: it applies in whatever domain a row turns out to be.
    """
    links = sim.links(pod_class)
    if links.plain:
        return room
    room = inter_pod_affinity.anti_affinity_room(links, room)
    return sim.counter_room(links.only(HOSTNAME), room)


def fill_evenly(
    sim: Simulation,
    pod_class: PodClass,
    count: int,
    room: IntArray,
    order: IntArray,
    keys: tuple[str, ...],
    terms: Terms = DEMAND,
) -> list[tuple[int, int]]:
    """Decide how many pods each place gets, then fill the rows of each place.

    Args:
        sim: The simulation, in which the pods are placed.
        pod_class: Their class.
        count: How many pods there are; those that the rules refuse get no place.
        room: (rows,) how many pods each row takes at most.
        order: Rows, in the order in which to fill them.
        keys: The topology keys whose rules are obeyed.
        terms: The terms of the question.

    Returns:
        Rows and amounts in the order of use.
    """
    fitting = room.nonzero()[0]
    if not len(fitting):
        return []
    places, membership = _places(coordinates_of_rows(sim, keys)[fitting])
    capacities = np.zeros(len(places), dtype=np.int64)
    np.add.at(capacities, membership, np.minimum(room[fitting], UNLIMITED))
    rules = SharedRules(sim, pod_class, keys, None, terms)
    amounts = assign(rules, places, capacities.tolist(), count)
    taken: list[tuple[int, int]] = []
    for place, amount in enumerate(amounts):
        if amount:
            inside = np.zeros(sim.rows, dtype=np.bool_)
            inside[fitting[membership == place]] = True
            rows, parts = take_in_order(np.where(inside, room, 0), order, amount)
            sim.place(pod_class, rows, parts)
            taken.extend(zip(rows.tolist(), parts.tolist(), strict=True))
    return taken


def _places(coordinates: IntArray) -> tuple[list[Coordinates], IntArray]:
    """Return the distinct places in order, and the number of each row's place.

    One key is the usual case, and unique numbers are found much faster than unique rows.
    """
    if coordinates.shape[1] == 1:
        values, membership = np.unique(coordinates[:, 0], return_inverse=True)
        return [(value,) for value in values.tolist()], membership
    found, membership = np.unique(coordinates, axis=0, return_inverse=True)
    return [tuple(place) for place in found.tolist()], membership.reshape(-1)

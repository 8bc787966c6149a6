"""Which counters count the pods of a class, and which ones it obeys.

There is one counter per description ("pods of these namespaces that this selector matches", "pods
that hold this anti-affinity term") and topology key.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from reconciler.model.cluster import TopologySpreadConstraint
from reconciler.planner.placement.arrays import BoolArray, IntArray, grown
from reconciler.planner.placement.classes import ClassTable, PodClass
from reconciler.planner.placement.eligible import EligibleKinds
from reconciler.planner.placement.kinds import ZONE
from reconciler.planner.placement.label_keys import NOWHERE
from reconciler.planner.placement.links import Links, SpreadRule
from reconciler.planner.placement.matching import (
    FEW,
    ClassIndex,
    Description,
    HolderIndex,
)
from reconciler.planner.placement.topology import Counter, Topology


class Eligible(NamedTuple):
    """Which rows a spread constraint counts."""

    number: int
    """By number in the table of node kinds that constraints count."""
    keys: tuple[str, ...]
    """Topology keys without which a row does not count."""


_ANY_ROW = Eligible(-1, ())


class _CounterGroup(NamedTuple):
    """Counters for which the same topology, keys and node kinds decide which rows they count."""

    topology: Topology
    keys: tuple[str, ...]
    by_kind: bool
    """Whether they count only nodes of some kinds."""


class _Part(NamedTuple):
    """Counters of a class for which the same decides which rows they count."""

    group: _CounterGroup
    places: IntArray
    """Their positions among all counters of the table."""
    numbers: IntArray
    """Their numbers in their topology."""
    eligible: IntArray
    """For each the number of the node kinds that it counts."""
    same: int | None
    """That number, if it is the same for all."""


class _CountedBy:
    """The counters that count pods of one class, as far as they are known."""

    def __init__(self) -> None:
        self.known = 0
        """How many counters of the table were examined."""
        self.counters: list[Counter] = []
        self.parts: dict[int, _Part] = {}


class CounterTable:
    """All counters of a simulation, each made when a class that obeys it is first asked about.

    A tenant's running pods may hold thousands of rules: those that are not asked about cost
    nothing.
    """

    def __init__(
        self,
        table: ClassTable,
        topologies: dict[str, Topology],
        eligible: EligibleKinds,
        kinds: Callable[[], IntArray],
        located: Callable[[IntArray], tuple[IntArray, IntArray]],
    ) -> None:
        """Build a table.

        Args:
            table: The classes.
            topologies: The topologies by key.
            eligible: Which node kinds spread constraints count.
            kinds: Returns the node kind of each row.
            located: Returns rows and amounts of all pods, running or reserved, of classes with
                these numbers.
        """
        self._topologies = topologies
        self._eligible = eligible
        self._kinds = kinds
        self._located = located
        self._counters: dict[tuple[object, ...], Counter] = {}
        self._made: list[Counter] = []
        """The counters that count anything, and for each of them:"""
        self._number_of: IntArray = np.zeros(0, dtype=np.int64)
        """its number in its topology,"""
        self._eligible_of: IntArray = np.zeros(0, dtype=np.int64)
        """the number of the node kinds that it counts, and"""
        self._group_of: IntArray = np.zeros(0, dtype=np.int64)
        """the number of what decides which rows it counts."""
        self._counter_groups: list[_CounterGroup] = []
        self._group_numbers: dict[tuple[str, tuple[str, ...], bool], int] = {}
        self._classes = table.classes
        self._daemons = table.daemons
        self._members: dict[Description, IntArray] = {}
        self._index = ClassIndex(self._classes)
        self._count_of_classes = len(self._classes)
        """How many classes counters can count: a class that comes later is not counted."""
        self._deleting = np.array([c.deleting for c in self._classes], dtype=np.bool_)
        self._users_of_claim: dict[str, list[int]] = {}
        self.empty = not any(
            c.anti_affinity or c.affinity or c.spread or c.follows_claim for c in self._classes
        )
        """Whether no class has a rule between pods, so that nothing is ever counted."""
        self._counted: BoolArray = np.zeros((len(self._classes), 0), dtype=np.bool_)
        """By class and counter, whether the counter counts pods of the class."""
        self._feeds: dict[int, _CountedBy] = {}
        self._links: dict[int, Links] = {}
        self._holders = HolderIndex(self._classes)

    def feeds(self, pod_class: PodClass) -> Sequence[Counter]:
        """Return the counters that count pods of the class, among those that any class obeys."""
        return self._feeds_of(pod_class.number).counters

    def count(self, pod_class: PodClass, rows: IntArray, amounts: IntArray) -> None:
        """Count more pods of the class (fewer if negative) in all counters that count them."""
        if not self._made:
            return
        for part in self._feeds_of(pod_class.number).parts.values():
            self._count_by(part, rows, amounts)

    def _count_by(self, part: _Part, rows: IntArray, amounts: IntArray) -> None:
        """Count more pods in some counters, on the rows that each of them counts."""
        topology, keys, by_kind = part.group
        if not by_kind:
            topology.count(part.numbers, rows, amounts)
            return
        kinds = self._kinds()[rows]
        if part.same is None:
            counted = np.ones(len(rows), dtype=np.bool_)
        else:
            counted = self._eligible.kinds(part.same)[kinds]
        for key in keys:
            counted &= self._topologies[key].domain[rows] >= 0
        if part.same is not None:
            if np.count_nonzero(counted):
                topology.count(part.numbers, rows[counted], amounts[counted])
            return
        for kind in np.unique(kinds[counted]).tolist():
            here = counted & (kinds == kind)
            numbers = part.numbers[self._eligible.at(part.eligible, kind)]
            if len(numbers):
                topology.count(numbers, rows[here], amounts[here])

    def _feeds_of(self, number: int) -> _CountedBy:
        counted_by = self._feeds.get(number)
        if counted_by is None:
            counted_by = self._feeds[number] = _CountedBy()
        if counted_by.known < len(self._made):
            if number < self._count_of_classes:
                new = self._counted[number, counted_by.known : len(self._made)].nonzero()[0]
                if len(new):
                    self._feed(counted_by, new + counted_by.known)
            counted_by.known = len(self._made)
        return counted_by

    def _feed(self, found: _CountedBy, new: IntArray) -> None:
        """Add counters to those that count pods of a class."""
        found.counters += [self._made[place] for place in new.tolist()]
        by_number: dict[int, list[int]] = {}
        for place, number in zip(new.tolist(), self._group_of[new].tolist(), strict=True):
            by_number.setdefault(number, []).append(place)
        for number, more in by_number.items():
            places = np.array(more)
            if number in found.parts:
                places = np.append(found.parts[number].places, places)
            found.parts[number] = self._part(number, places)

    def _part(self, number: int, places: IntArray) -> _Part:
        group, numbers = self._counter_groups[number], self._number_of[places]
        eligible = self._eligible_of[places]
        alike = not group.by_kind or len(places) == 1 or (eligible == eligible[0]).all()
        same = int(eligible[0]) if alike else None
        return _Part(group, places, numbers, eligible, same)

    def links(self, pod_class: PodClass) -> Links:
        """Return the counters of a class."""
        known = self._links.get(pod_class.number)
        if known is None:
            known = self._links[pod_class.number] = Links()
            if not self.empty:
                self._link(pod_class, known)
        return known

    def _link(self, pod_class: PodClass, links: Links) -> None:
        for term in pod_class.anti_affinity:
            description = (term.namespaces, term.selector)
            matching = self._counter(
                "match", description, term.topology_key, self.members(description)
            )
            links.anti.append((matching, self._is_member(pod_class, description)))
        for what, topology_key, holders in self._holders.against(pod_class):
            links.held_against.append(self._counter("hold", what, topology_key, holders))
        if pod_class.affinity:
            self._link_affinity(pod_class, links)
        elif pod_class.follows_claim:
            self._link_claim(pod_class.volumes.zone_claim, links)
        keys = tuple(sorted({c.topology_key for c in pod_class.spread}))
        for constraint in pod_class.spread:
            self._link_spread(pod_class, links, constraint, keys)

    def _link_affinity(self, pod_class: PodClass, links: Links) -> None:
        """Link the affinity terms: as in kube-scheduler, only pods that match all of them count."""
        descriptions = tuple((t.namespaces, t.selector) for t in pod_class.affinity)
        common = self.members(descriptions[0])
        for description in descriptions[1:]:
            common = np.intersect1d(common, self.members(description), assume_unique=True)
        for term in pod_class.affinity:
            links.affinity.append(self._counter("all", descriptions, term.topology_key, common))
        links.affinity_itself = bool((common == pod_class.number).any())
        links.near_daemons = bool(self._daemons_among(common))

    def _link_claim(self, zone_claim: str, links: Links) -> None:
        """Link the users of a claim without a volume yet: all go to the zone of the first one."""
        if not self._users_of_claim:
            for member in self._classes:
                self._users_of_claim.setdefault(member.volumes.zone_claim, []).append(member.number)
        users = np.array(self._users_of_claim[zone_claim], dtype=np.int64)
        links.affinity.append(self._counter("claim", zone_claim, ZONE, users))
        links.affinity_itself = True
        links.follows_claim = True

    def _link_spread(
        self,
        pod_class: PodClass,
        links: Links,
        constraint: TopologySpreadConstraint,
        keys: tuple[str, ...],
    ) -> None:
        description = (frozenset({pod_class.namespace}), constraint.selector)
        members = self.staying(description)
        number = self._eligible.number(
            pod_class.static,
            honor_affinity=constraint.honor_node_affinity,
            honor_taints=constraint.honor_node_taints,
        )
        eligible = Eligible(number, keys)
        counter = self._counter(
            "spread", (description, eligible), constraint.topology_key, members, eligible
        )
        counts_itself = self._is_member(pod_class, description)
        links.spread.append(
            SpreadRule(
                counter=counter,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains,
                counts_itself=counts_itself and not pod_class.deleting,
                keys=keys,
                eligible_kinds=lambda: self._eligible.kinds(number),
            )
        )

    def _counter(
        self,
        role: str,
        what: object,
        topology_key: str,
        members: IntArray,
        eligible: Eligible = _ANY_ROW,
    ) -> Counter:
        """Return the counter for this description; a new one counts its members' present pods."""
        key = (role, what, topology_key)
        known = self._counters.get(key)
        if known is None:
            known = self._counters[key] = Counter(self._topologies[topology_key])
            known.daemons = self._daemons_among(members)
            if topology_key != NOWHERE and len(members):
                self._begin(known, members, eligible)
        return known

    def _begin(self, counter: Counter, members: IntArray, eligible: Eligible) -> None:
        """Let a counter count the pods of these classes, starting with the present ones."""
        place = len(self._made)
        if self._counted.shape[1] == place:
            more = np.zeros((len(self._counted), max(16, place)), dtype=np.bool_)
            self._counted = np.concatenate([self._counted, more], axis=1)
        self._counted[members, place] = True
        self._made.append(counter)
        key = (counter.topology.key, eligible.keys, eligible.number >= 0)
        group = self._group_numbers.get(key)
        if group is None:
            group = self._group_numbers[key] = len(self._counter_groups)
            self._counter_groups.append(_CounterGroup(counter.topology, *key[1:]))
        self._number_of = _with_value(self._number_of, place, counter.number)
        self._eligible_of = _with_value(self._eligible_of, place, eligible.number)
        self._group_of = _with_value(self._group_of, place, group)
        rows, amounts = self._located(members)
        if len(rows):
            self._count_by(self._part(group, np.array([place])), rows, amounts)

    def _daemons_among(self, members: IntArray) -> frozenset[int]:
        """Return the numbers of those classes whose pods come with new nodes."""
        if not (self._daemons and len(members)):
            return frozenset()
        if len(members) <= FEW:
            return frozenset(self._daemons.intersection(members.tolist()))
        return frozenset(np.intersect1d(members, sorted(self._daemons)).tolist())

    def members(self, description: Description) -> IntArray:
        """Return the numbers of the classes whose pods the description matches, in order."""
        known = self._members.get(description)
        if known is None:
            known = self._members[description] = self._index.matching(description)
        return known

    def staying(self, description: Description) -> IntArray:
        """Return those of `members` whose pods are not being deleted."""
        members = self.members(description)
        return members[~self._deleting[members]]

    def _is_member(self, pod_class: PodClass, description: Description) -> bool:
        return bool(np.count_nonzero(self.members(description) == pod_class.number))


def _with_value(array: IntArray, place: int, value: int) -> IntArray:
    """Return the array with a value at a position, which may be its end."""
    found = grown(array, place + 1)
    found[place] = value
    return found

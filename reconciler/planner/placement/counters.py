"""Which counters each class feeds, and which ones it obeys.

A counter exists per description ("pods of these namespaces that this selector matches", "pods
that hold this anti-affinity term") and topology key.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from reconciler.model.cluster import TopologySpreadConstraint
from reconciler.model.selectors import LabelSelector
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import ClassTable, PodClass
from reconciler.planner.placement.kinds import HOSTNAME, ZONE
from reconciler.planner.placement.label_keys import NOWHERE
from reconciler.planner.placement.topology import Counter, Topology

Description = tuple[frozenset[str], LabelSelector | None]


@dataclass(slots=True, eq=False)
class SpreadRule:
    """One hard topology spread constraint as one class sees it."""

    counter: Counter
    max_skew: int
    min_domains: int
    counts_itself: bool
    keys: tuple[str, ...]
    """All hard constraints' keys: a node without one of them is no domain of any."""
    eligible_kinds: Callable[[], BoolArray]
    """Per node kind, whether this constraint counts such nodes."""
    present: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Certain domains with an eligible row, as of `present_version` of the rows."""
    present_version: int = -1


class Eligible(NamedTuple):
    """Which rows a spread constraint counts."""

    kinds: Callable[[], BoolArray]
    keys: tuple[str, ...]
    """Topology keys without which a row counts for nothing."""


class Feed(NamedTuple):
    """A counter, and which rows it counts; None for all."""

    counter: Counter
    eligible: Eligible | None


@dataclass(slots=True, eq=False)
class Links:
    """A class's counters."""

    anti: list[tuple[Counter, bool]] = field(default_factory=list)
    """Own anti-affinity terms, and whether the class matches the term itself."""
    held_against: list[Counter] = field(default_factory=list)
    """Others' anti-affinity terms that match this class: pods holding them, per domain."""
    affinity: list[Counter] = field(default_factory=list)
    affinity_itself: bool = False
    """Whether it matches all of its own affinity terms: it may be the first of its group."""
    near_daemons: bool = False
    """Whether a daemon's pod that new nodes come with matches all of its affinity terms."""
    follows_claim: bool = False
    """Whether its affinity is to the other users of a claim."""
    spread: list[SpreadRule] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    """Counters that count its pods; more come as other classes are asked about."""

    @property
    def plain(self) -> bool:
        """Return whether no affinity or spread rule applies to the class."""
        return not (self.anti or self.held_against or self.affinity or self.spread)

    @property
    def follows_others(self) -> bool:
        """Return whether the pods must be near pods of other classes."""
        return bool(self.affinity) and not self.affinity_itself

    @property
    def shares_node(self) -> bool:
        """Return whether the pods must be on one node with others, of their class or of another."""
        return any(counter.topology.key == HOSTNAME for counter in self.affinity)

    @property
    def hopeless(self) -> bool:
        """Return whether no node, and no new one either, takes a pod of the class as things are.

        A rule asks for a label that no node has and no new one will have, or for a neighbour that
        is nowhere. Beside spread constraints that one is found row by row, which tells the rule
        that refuses.
        """
        if self.affinity and not self.spread and self.lacks_neighbour:
            return True
        asked = [*self.affinity, *(rule.counter for rule in self.spread)]
        return any(counter.topology.key == NOWHERE for counter in asked)

    @property
    def lacks_neighbour(self) -> bool:
        """Whether no node can take a pod of the class before another class has a pod somewhere.

        Its affinity asks for pods of which none runs or has a place, and its own are none of them.
        """
        if self.affinity_itself or self.near_daemons:
            return False
        return any(not c.total for c in self.affinity)

    def only(self, key: str) -> "Links":
        """Return the same rules, those of one topology key only."""
        return Links(
            anti=[(c, itself) for c, itself in self.anti if c.topology.key == key],
            held_against=[c for c in self.held_against if c.topology.key == key],
            affinity=[c for c in self.affinity if c.topology.key == key],
            affinity_itself=self.affinity_itself,
            near_daemons=self.near_daemons,
            spread=[r for r in self.spread if r.counter.topology.key == key],
        )

    def obeyed(self) -> list[Counter]:
        """Return every counter whose value can refuse this class."""
        own = [counter for counter, _ in self.anti] + [rule.counter for rule in self.spread]
        return own + self.held_against + self.affinity


class CounterTable:
    """All counters of a simulation, each made when a class that obeys it is first asked about.

    A tenant's pods that run may hold thousands of rules: what is not asked about costs nothing.
    """

    def __init__(
        self,
        table: ClassTable,
        topologies: dict[str, Topology],
        eligible_kinds: Callable[[int, bool, bool], BoolArray],
        located: Callable[[PodClass], Iterable[tuple[IntArray, IntArray]]],
        count: Callable[[Feed, IntArray, IntArray], None],
    ) -> None:
        """A table.

        Args:
            table: The classes.
            topologies: By key.
            eligible_kinds: `(static number, honor affinity, honor taints)` is asked per node kind.
            located: Rows and amounts of all pods of a class that run or are reserved.
            count: Counts pods on rows for a counter.
        """
        self._topologies = topologies
        self._eligible_kinds = eligible_kinds
        self._located = located
        self._count = count
        self._counters: dict[tuple[object, ...], Counter] = {}
        self._classes = table.classes
        self._daemons = table.daemons
        self._members: dict[Description, tuple[PodClass, ...]] = {}
        self._stay: dict[Description, tuple[PodClass, ...]] = {}
        self._numbers: dict[Description, frozenset[int]] = {}
        self._index = _ClassIndex(self._classes)
        self._users_of_claim: dict[str, list[PodClass]] = {}
        self.empty = not any(
            c.anti_affinity or c.affinity or c.spread or c.follows_claim for c in self._classes
        )
        """Whether no class has a rule between pods: nothing is ever counted."""
        self._feeds: dict[int, list[Feed]] = {}
        self._links: dict[int, Links] = {}
        self._holders = _HolderIndex(self._classes)

    def feeds(self, pod_class: PodClass) -> Sequence[Feed]:
        """Return the counters that count pods of the class, as far as anything obeys them."""
        return self._feeds.get(pod_class.number, ())

    def links(self, pod_class: PodClass) -> Links:
        """Return the counters of a class."""
        known = self._links.get(pod_class.number)
        if known is None:
            known = self._links[pod_class.number] = Links(
                feeds=self._feeds.setdefault(pod_class.number, [])
            )
            if not self.empty:
                self._link(pod_class, known)
        return known

    def _link(self, pod_class: PodClass, links: Links) -> None:
        for term in pod_class.anti_affinity:
            description = (term.namespaces, term.selector)
            matching = self._counter(
                "match", description, term.topology_key, self.members(description)
            )
            links.anti.append((matching, pod_class.number in self._member_numbers(description)))
        for description, topology_key, holders in self._holders.against(pod_class):
            links.held_against.append(self._counter("hold", description, topology_key, holders))
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
            numbers = self._member_numbers(description)
            common = tuple(member for member in common if member.number in numbers)
        for term in pod_class.affinity:
            links.affinity.append(self._counter("all", descriptions, term.topology_key, common))
        links.affinity_itself = any(member is pod_class for member in common)
        links.near_daemons = any(member.number in self._daemons for member in common)

    def _link_claim(self, zone_claim: str, links: Links) -> None:
        """Link the users of a claim without a volume yet: all go to the zone of the first one."""
        if not self._users_of_claim:
            for member in self._classes:
                self._users_of_claim.setdefault(member.volumes.zone_claim, []).append(member)
        users = self._users_of_claim[zone_claim]
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
        members = self._staying(description)
        honors = (constraint.honor_node_affinity, constraint.honor_node_taints)

        def eligible_kinds() -> BoolArray:
            return self._eligible_kinds(pod_class.static, *honors)

        what = (description, pod_class.static, honors, keys)
        counter = self._counter(
            "spread", what, constraint.topology_key, members, Eligible(eligible_kinds, keys)
        )
        counts_itself = pod_class.number in self._member_numbers(description)
        links.spread.append(
            SpreadRule(
                counter=counter,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains,
                counts_itself=counts_itself and not pod_class.deleting,
                keys=keys,
                eligible_kinds=eligible_kinds,
            )
        )

    def _counter(
        self,
        role: str,
        what: object,
        topology_key: str,
        members: Sequence[PodClass],
        eligible: "Eligible | None" = None,
    ) -> Counter:
        """Return the counter with this meaning; a new one counts what is there of its members."""
        key = (role, what, topology_key)
        known = self._counters.get(key)
        if known is None:
            known = self._counters[key] = Counter(self._topologies[topology_key])
            known.daemons = frozenset(m.number for m in members if m.number in self._daemons)
            feed = Feed(known, eligible)
            for member in members if topology_key != NOWHERE else ():
                self._feeds.setdefault(member.number, []).append(feed)
                for rows, amounts in self._located(member):
                    self._count(feed, rows, amounts)
        return known

    def members(self, description: Description) -> tuple[PodClass, ...]:
        """Return the classes whose pods the description matches."""
        known = self._members.get(description)
        if known is None:
            namespaces, selector = description
            known = self._members[description] = tuple(
                [
                    c
                    for c in self._index.candidates(namespaces, selector)
                    if c.namespace in namespaces
                    and selector is not None
                    and selector.matches(c.labels)
                ]
            )
        return known

    def _staying(self, description: Description) -> tuple[PodClass, ...]:
        """Return those of them whose pods are not being deleted."""
        known = self._stay.get(description)
        if known is None:
            known = tuple([m for m in self.members(description) if not m.deleting])
            self._stay[description] = known
        return known

    def _member_numbers(self, description: Description) -> frozenset[int]:
        known = self._numbers.get(description)
        if known is None:
            known = frozenset(member.number for member in self.members(description))
            self._numbers[description] = known
        return known


class _ClassIndex:
    """Classes by namespace and label, so that a selector is compared with few of them."""

    def __init__(self, classes: Sequence[PodClass]) -> None:
        self._by_namespace: dict[str, list[PodClass]] = {}
        self._by_label: dict[tuple[str, str, str | None], list[PodClass]] = {}
        """By namespace, key and value, and by namespace and key alone."""
        for pod_class in classes:
            namespace = pod_class.namespace
            self._by_namespace.setdefault(namespace, []).append(pod_class)
            for key, value in pod_class.labels.items():
                self._by_label.setdefault((namespace, key, value), []).append(pod_class)
                self._by_label.setdefault((namespace, key, None), []).append(pod_class)

    def candidates(
        self, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> Iterator[PodClass]:
        """The classes that the selector may match, in the order of their numbers per namespace."""
        if selector is None:
            return
        insisted = labels_insisted_on(selector)
        for namespace in sorted(namespaces & self._by_namespace.keys()):
            if insisted is None:
                yield from self._by_namespace[namespace]
                continue
            key, values = insisted
            for value in values:
                yield from self._by_label.get((namespace, key, value), ())


class _HolderIndex:
    """Anti-affinity terms and the classes that hold them, by what a pod must be to match one."""

    def __init__(self, classes: Sequence[PodClass]) -> None:
        holders: dict[tuple[Description, str], list[PodClass]] = {}
        for pod_class in classes:
            for term in pod_class.anti_affinity:
                key = ((term.namespaces, term.selector), term.topology_key)
                holders.setdefault(key, []).append(pod_class)
        self._holders = holders
        self._insisting: dict[tuple[str, str, str | None], list[tuple[Description, str]]] = {}
        """By namespace, label key and value; by namespace and label key alone."""
        self._open: dict[str, list[tuple[Description, str]]] = {}
        """By namespace, those that insist on no label."""
        for term_key in holders:
            self._add(term_key)

    def _add(self, term_key: tuple[Description, str]) -> None:
        (namespaces, selector), _ = term_key
        if selector is None:
            return
        insisted = labels_insisted_on(selector)
        for namespace in namespaces:
            if insisted is None:
                self._open.setdefault(namespace, []).append(term_key)
                continue
            key, values = insisted
            for value in values:
                self._insisting.setdefault((namespace, key, value), []).append(term_key)

    def against(self, pod_class: PodClass) -> Iterator[tuple[Description, str, Sequence[PodClass]]]:
        """Yield the terms that match the class, each with its topology key and who holds it."""
        namespace = pod_class.namespace
        found = list(self._open.get(namespace, ()))
        if self._insisting:
            for key, value in pod_class.labels.items():
                found += self._insisting.get((namespace, key, value), ())
                found += self._insisting.get((namespace, key, None), ())
        for term_key in found:
            (namespaces, selector), topology_key = term_key
            if selector is not None and selector.matches(pod_class.labels):
                yield (namespaces, selector), topology_key, self._holders[term_key]


def labels_insisted_on(selector: LabelSelector) -> tuple[str, tuple[str | None, ...]] | None:
    """Return a label key without which the selector never matches, and its values; (None,) for any.

    None when the selector insists on no label.
    """
    if selector.match_labels:
        key, value = min(selector.match_labels.items())
        return key, (value,)
    present: str | None = None
    for line in selector.match_expressions:
        if line.operator == "In":
            return line.key, tuple(dict.fromkeys(line.values))
        if line.operator == "Exists" and present is None:
            present = line.key
    return None if present is None else (present, (None,))

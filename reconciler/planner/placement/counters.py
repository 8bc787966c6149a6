"""Which counters each class feeds, and which ones it obeys.

A counter exists per description ("pods of these namespaces that this selector matches", "pods
that hold this anti-affinity term") and topology key. Built once per snapshot, over all classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.cluster import PodAffinityTerm, TopologySpreadConstraint
from reconciler.model.selectors import LabelSelector
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import ClassTable, PodClass
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


@dataclass(slots=True, eq=False)
class Links:
    """A class's counters."""

    anti: list[tuple[Counter, bool]] = field(default_factory=list)
    """Own anti-affinity terms, and whether the class matches the term itself."""
    held_against: list[Counter] = field(default_factory=list)
    """Others' anti-affinity terms that match this class: pods holding them, per domain."""
    affinity: list[Counter] = field(default_factory=list)
    affinity_itself: bool = False
    """Matches all of its own affinity terms: may be the first pod of the group."""
    spread: list[SpreadRule] = field(default_factory=list)
    feeds: list[Counter] = field(default_factory=list)
    feeds_eligible: list[tuple[Counter, Callable[[], BoolArray], tuple[str, ...]]] = field(
        default_factory=list
    )

    @property
    def plain(self) -> bool:
        """Obeys no counter: resources and static filters are the whole story."""
        return not (self.anti or self.held_against or self.affinity or self.spread)

    def only(self, key: str) -> "Links":
        """The same rules, those of one topology key only."""
        return Links(
            anti=[(c, itself) for c, itself in self.anti if c.topology.key == key],
            held_against=[c for c in self.held_against if c.topology.key == key],
            affinity=[c for c in self.affinity if c.topology.key == key],
            affinity_itself=self.affinity_itself,
            spread=[r for r in self.spread if r.counter.topology.key == key],
        )

    def obeyed(self) -> list[Counter]:
        """Every counter whose value can refuse this class."""
        own = [counter for counter, _ in self.anti] + [rule.counter for rule in self.spread]
        return own + self.held_against + self.affinity


class CounterTable:
    """All counters of a simulation."""

    def __init__(
        self,
        table: ClassTable,
        topologies: dict[str, Topology],
        eligible_kinds: Callable[[int, bool, bool], BoolArray],
    ) -> None:
        """`eligible_kinds(static number, honor affinity, honor taints)` is asked per node kind."""
        self._topologies = topologies
        self._eligible_kinds = eligible_kinds
        self._counters: dict[tuple[object, ...], Counter] = {}
        self._classes = table.classes
        self._members: dict[Description, tuple[PodClass, ...]] = {}
        self._by_label: dict[tuple[str, str], list[PodClass]] = {}
        for pod_class in self._classes:
            for item in pod_class.labels.items():
                self._by_label.setdefault(item, []).append(pod_class)
        self.empty = not any(c.anti_affinity or c.affinity or c.spread for c in self._classes)
        """Whether no class has a rule between pods: nothing is ever counted."""
        if self.empty:
            self.links = [Links()] * len(self._classes)
            return
        self.links = [Links() for _ in self._classes]
        for pod_class in self._classes:
            self._link(pod_class)

    def _link(self, pod_class: PodClass) -> None:
        for term in pod_class.anti_affinity:
            self._link_anti(pod_class, term)
        if pod_class.affinity:
            self._link_affinity(pod_class)
        keys = tuple(sorted({c.topology_key for c in pod_class.spread}))
        for constraint in pod_class.spread:
            self._link_spread(pod_class, constraint, keys)

    def _link_anti(self, pod_class: PodClass, term: PodAffinityTerm) -> None:
        description = (term.namespaces, term.selector)
        members = self.members(description)
        matching, new = self._counter("match", description, term.topology_key)
        if new:
            for member in members:
                self.links[member.number].feeds.append(matching)
        holders, new = self._counter("hold", description, term.topology_key)
        if new:
            for member in members:
                self.links[member.number].held_against.append(holders)
        links = self.links[pod_class.number]
        links.feeds.append(holders)
        links.anti.append((matching, pod_class in members))

    def _link_affinity(self, pod_class: PodClass) -> None:
        """kube-scheduler counts only pods that match every term of the incoming pod."""
        descriptions = tuple((t.namespaces, t.selector) for t in pod_class.affinity)
        common = [
            member
            for member in self.members(descriptions[0])
            if all(member in self.members(d) for d in descriptions[1:])
        ]
        links = self.links[pod_class.number]
        for term in pod_class.affinity:
            counter, new = self._counter("all", descriptions, term.topology_key)
            if new:
                for member in common:
                    self.links[member.number].feeds.append(counter)
            links.affinity.append(counter)
        links.affinity_itself = pod_class in common

    def _link_spread(
        self, pod_class: PodClass, constraint: TopologySpreadConstraint, keys: tuple[str, ...]
    ) -> None:
        description = (frozenset({pod_class.namespace}), constraint.selector)
        members = [m for m in self.members(description) if not m.deleting]
        honors = (constraint.honor_node_affinity, constraint.honor_node_taints)

        def eligible_kinds() -> BoolArray:
            return self._eligible_kinds(pod_class.static, *honors)

        counter, new = self._counter(
            "spread", (description, pod_class.static, honors, keys), constraint.topology_key
        )
        if new:
            for member in members:
                self.links[member.number].feeds_eligible.append((counter, eligible_kinds, keys))
        self.links[pod_class.number].spread.append(
            SpreadRule(
                counter=counter,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains,
                counts_itself=pod_class in members,
                keys=keys,
                eligible_kinds=eligible_kinds,
            )
        )

    def _counter(self, role: str, what: object, topology_key: str) -> tuple[Counter, bool]:
        """The counter with this meaning, and whether it is new."""
        key = (role, what, topology_key)
        known = self._counters.get(key)
        if known is not None:
            return known, False
        self._counters[key] = Counter(self._topologies[topology_key])
        return self._counters[key], True

    def members(self, description: Description) -> tuple[PodClass, ...]:
        """The classes whose pods the description matches."""
        if description not in self._members:
            namespaces, selector = description
            self._members[description] = tuple(
                c
                for c in self._candidates(selector)
                if c.namespace in namespaces and selector is not None and selector.matches(c.labels)
            )
        return self._members[description]

    def _candidates(self, selector: LabelSelector | None) -> Sequence[PodClass]:
        """Only classes with the selector's first label, so that many terms stay cheap."""
        if selector is not None and selector.match_labels:
            first = min(selector.match_labels.items())
            return self._by_label.get(first, [])
        return self._classes

"""Spreading pods of one class over topology domains that several rows share (zones, racks).

Rows with the same domains for the class's shared rules form a *place*. `assign` decides how many
pods go to each place so that every shared rule holds at the end. Within a place rows differ only in
resources and hostname rules, which the caller checks when it fills them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np

from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import topology_spread
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.links import Links, SpreadRule
from reconciler.planner.placement.simulation import DEMAND, Simulation, Terms
from reconciler.planner.placement.topology import Counter, Topology

_UNCERTAIN = -2
"""Coordinates of a place: a domain, -1 without one, or -2 - n for the n-th set of choices."""

Coordinates = tuple[int, ...]


def shared_keys(links: Links) -> tuple[str, ...]:
    """Return the topology keys of the class's rules by which rows share domains."""
    return tuple(sorted({c.topology.key for c in links.obeyed()} - {HOSTNAME}))


def coordinates_of_rows(sim: Simulation, keys: Sequence[str]) -> IntArray:
    """Return per row (first axis) its place; uncertain rows with equal choices are one place."""
    columns = []
    for key in keys:
        topology = sim.topologies[key]
        domains = topology.domain
        choices = np.append(topology.choice_of_domains(), -1)[domains]
        columns.append(np.where(choices >= 0, _UNCERTAIN - choices, domains))
    return np.stack(columns, axis=1) if columns else np.zeros((sim.rows, 0), dtype=np.int64)


@dataclass(slots=True, eq=False)
class _Tally:
    """Counts per domain during an assignment; the simulation's counts do not change."""

    counts: dict[int, int]
    uncertain: dict[int, int] = field(default_factory=dict)
    """Pods assigned to places whose domain is open."""

    def most(self, at: int, topology: Topology) -> int:
        """Return the count of the coordinate's domain; the worst case if it is open."""
        if at <= _UNCERTAIN:
            return max(
                (self.counts.get(d, 0) for d in topology.choices[_UNCERTAIN - at]), default=0
            )
        return self.counts.get(at, 0)

    def add(self, at: int, amount: int) -> None:
        if at <= _UNCERTAIN:
            self.uncertain_at(at, amount)
        else:
            self.counts[at] = self.counts.get(at, 0) + amount

    def uncertain_at(self, at: int, amount: int) -> None:
        """Return how many pods are on nodes whose domain EC2 has yet to choose."""
        self.uncertain[at] = self.uncertain.get(at, 0) + amount


class _RulesOfKey(NamedTuple):
    """A class's rules by one topology key."""

    axis: int
    topology: Topology
    near: Sequence[Counter]
    even: Sequence[SpreadRule]
    apart: Sequence[Counter]
    """Its own anti-affinity and others', which count here where a zone is assumed."""


class SharedRules:
    """The shared rules of one class, with tallies that follow an assignment."""

    def __init__(
        self,
        sim: Simulation,
        pod_class: PodClass,
        keys: Sequence[str],
        tallies: dict[int, _Tally] | None,
        terms: Terms = DEMAND,
    ) -> None:
        """Prepare the rules of a class.

        Args:
            sim: The simulation.
            pod_class: The class.
            keys: The topology keys whose rules are meant.
            tallies: By counter `id`; they outlive one class while a purchase is planned. None if no
                other class is assigned: then only what this class obeys is tallied.
            terms: The terms of the question.
        """
        self._axis = {key: i for i, key in enumerate(keys)}
        self._tallies = {} if tallies is None else tallies
        self._zone_assumed = terms.zone_assumed
        links = sim.links(pod_class)
        self._anti = [(c, itself) for c, itself in links.anti if c.topology.key in self._axis]
        self._held = [c for c in links.held_against if c.topology.key in self._axis]
        self._affinity = [c for c in links.affinity if c.topology.key in self._axis]
        self._first_may = links.affinity_itself
        self._spread = [r for r in links.spread if r.counter.topology.key in self._axis]
        self._feeds = [c for c in sim.feeds(pod_class) if c.topology.key in self._axis]
        if tallies is None:
            obeyed = set(links.obeyed())
            self._feeds = [counter for counter in self._feeds if counter in obeyed]
        self._by_key = [
            _RulesOfKey(axis, sim.topologies[key], only.affinity, only.spread, only.apart)
            for key, axis in self._axis.items()
            if (only := links.only(key)).affinity
            or only.spread
            or (terms.zone_assumed and only.apart)
        ]
        for rule in self._spread:
            topology_spread.refresh_domains(rule, sim.kinds, sim.topologies, sim.version)
        self._domains: dict[int, set[int]] = {
            id(rule): {int(d) for d in rule.present} for rule in self._spread
        }

    def open_domains(self, places: Sequence[Coordinates]) -> None:
        """Count the places' domains as existing, as nodes will be there once they are used."""
        for rule in self._spread:
            axis = self._axis[rule.counter.topology.key]
            self._domains[id(rule)] |= {p[axis] for p in places if p[axis] >= 0}

    def _tally(self, counter: Counter) -> _Tally:
        known = self._tallies.get(id(counter))
        if known is None:
            counts = {int(d): int(counter.counts[d]) for d in counter.counts.nonzero()[0]}
            known = self._tallies[id(counter)] = _Tally(counts=counts)
            choices = counter.topology.choice_of_domains()
            for domain, amount in counts.items():
                if choices[domain] >= 0:
                    known.uncertain_at(_UNCERTAIN - int(choices[domain]), amount)
        return known

    def allows(self, place: Coordinates) -> bool:
        """Return whether one more pod may go to the place."""
        return (
            not self.kept_apart(place)
            and self._may_begin(place)
            and all(self._key_allows(rules, place[rules.axis]) for rules in self._by_key)
        )

    def kept_apart(self, place: Coordinates) -> bool:
        """Return whether anti-affinity excludes one more pod from the place, its own or others'."""
        return not (
            all(self._anti_allows(c, place, itself=itself) for c, itself in self._anti)
            and all(self._anti_allows(c, place, itself=False) for c in self._held)
        )

    def _anti_allows(self, counter: Counter, place: Coordinates, *, itself: bool) -> bool:
        at = place[self._axis[counter.topology.key]]
        tally = self._tally(counter)
        if at == -1 or (self._zone_assumed and at <= _UNCERTAIN):
            return True
        if at <= _UNCERTAIN and itself:
            room = len(counter.topology.choices[_UNCERTAIN - at])
            if tally.uncertain.get(at, 0) >= room:
                return False
        return tally.most(at, counter.topology) == 0

    def _may_begin(self, place: Coordinates) -> bool:
        """Return whether all affinity labels exist, and a group runs already or may start."""
        if any(place[self._axis[c.topology.key]] == -1 for c in self._affinity):
            return False
        return not self._affinity or self._first_may or self._begun()

    def _begun(self) -> bool:
        """Return whether any pod that the class must be near runs or is reserved."""
        tallies = [self._tally(c) for c in self._affinity]
        return any(any(t.counts.values()) or any(t.uncertain.values()) for t in tallies)

    def _key_allows(self, rules: _RulesOfKey, at: int) -> bool:
        """Return whether affinity and spread by one key allow the domain.

        With `Terms.hope` an open domain may become any of its choices, and all rules must hold in
        that one.
        """
        near = rules.near if rules.near and self._begun() else ()
        if not (self._zone_assumed and at <= _UNCERTAIN):
            return all(self._holds(c, at) for c in near) and all(
                self._spread_allows(rule, at) for rule in rules.even
            )
        return any(
            all(self._holds(c, domain) for c in near)
            and all(self._spread_allows(rule, at, assumed=domain) for rule in rules.even)
            and not any(self._may_be_in(c, domain) for c in rules.apart)
            for domain in rules.topology.choices[_UNCERTAIN - at]
        )

    def some_zone_allowed(self, place: Coordinates) -> bool:
        """Return whether the rules allow at least one zone in which the open node may start.

        Pods whose own domain is open count as neighbours in all zones that it may become, and take
        up no room in any: what is refused here is refused in whichever zone they start.
        """
        return all(
            self._some_zone_allowed(rules, place[rules.axis])
            for rules in self._by_key
            if place[rules.axis] <= _UNCERTAIN
        )

    def _some_zone_allowed(self, rules: _RulesOfKey, at: int) -> bool:
        return all(self._has_open_room(rule, at) for rule in rules.even) and any(
            all(self._may_hold(c, domain) for c in rules.near)
            and all(self._spread_allows(rule, domain) for rule in rules.even)
            for domain in rules.topology.choices[_UNCERTAIN - at]
        )

    def _has_open_room(self, rule: SpreadRule, at: int) -> bool:
        """Return whether an open domain takes one more pod of a spread that lacks domains.

        With fewer domains than `minDomains` each takes `maxSkew` pods, whatever the others hold.
        """
        if at > _UNCERTAIN or not rule.counts_itself:
            return True
        choices = rule.counter.topology.choices[_UNCERTAIN - at]
        if len(self._domains[id(rule)].union(choices)) >= rule.min_domains:
            return True
        tally = self._tally(rule.counter)
        room = sum(max(0, rule.max_skew - tally.counts.get(choice, 0)) for choice in choices)
        return tally.uncertain.get(at, 0) < room

    def _may_hold(self, counter: Counter, domain: int) -> bool:
        return not self._begun() or self._may_be_in(counter, domain)

    def _may_be_in(self, counter: Counter, domain: int) -> bool:
        """Return whether pods that count are in the domain, or on nodes that may start in it."""
        open_at = [at for at, amount in self._tally(counter).uncertain.items() if amount]
        choices = counter.topology.choices
        return self._holds(counter, domain) or any(
            domain in choices[_UNCERTAIN - at] for at in open_at
        )

    def _holds(self, counter: Counter, at: int) -> bool:
        counts = self._tally(counter).counts
        if at <= _UNCERTAIN:
            return all(counts.get(d, 0) for d in counter.topology.choices[_UNCERTAIN - at])
        return counts.get(at, 0) > 0

    def _spread_allows(self, rule: SpreadRule, at: int, assumed: int | None = None) -> bool:
        """Return whether the skew allows one more.

        With `assumed` as if the whole open domain were there.
        """
        if at == -1 or not self._has_open_room(rule, at):
            return False
        tally, itself = self._tally(rule.counter), int(rule.counts_itself)
        there = tally.most(at, rule.counter.topology)
        if assumed is not None:
            there = tally.counts.get(assumed, 0) + tally.uncertain.get(at, 0)
        return there + itself - self._least(rule, tally, assumed, there) <= rule.max_skew

    def _least(self, rule: SpreadRule, tally: _Tally, assumed: int | None, there: int) -> int:
        """Return the count of the least filled domain, with `there` in the assumed one."""
        domains = self._domains[id(rule)]
        if len(domains) < rule.min_domains:
            return 0
        counts = tally.counts
        return min((there if d == assumed else counts.get(d, 0) for d in domains), default=0)

    def load(self, place: Coordinates) -> int:
        """Return how full the place is by its most filled rule: emptier places come first."""
        loads = [
            self._tally(r.counter).most(
                place[self._axis[r.counter.topology.key]], r.counter.topology
            )
            for r in self._spread
        ]
        return max(loads, default=0)

    @property
    def together(self) -> bool:
        """Return whether all pods of the class must go to the same place, by affinity alone."""
        return bool(self._affinity) and self.at_once

    @property
    def at_once(self) -> bool:
        """Return whether a place that one pod of the class may go to is open to all of them."""
        return not (self._spread or self._anti)

    def emptiest(self, places: Sequence[Coordinates], room: Sequence[int]) -> int | None:
        """Return the allowed place with room that is least loaded; the first one if equal."""
        for _, index in sorted((self.load(p), i) for i, p in enumerate(places) if room[i] > 0):
            if self.allows(places[index]):
                return index
        return None

    def ladder(self, places: Sequence[Coordinates]) -> "Ladder | None":
        """Return the rules as levels to fill, if they are a single spread over certain domains."""
        if self._anti or self._held or self._affinity or len(self._spread) != 1:
            return None
        rule = self._spread[0]
        axis, domains = self._axis[rule.counter.topology.key], self._domains[id(rule)]
        at = [place[axis] for place in places]
        if not rule.counts_itself or len(set(at)) < len(at) or not domains.issuperset(at):
            return None
        counts = self._tally(rule.counter).counts
        rest = [counts.get(domain, 0) for domain in domains.difference(at)]
        return Ladder(
            levels=[counts.get(domain, 0) for domain in at],
            least_elsewhere=min(rest, default=None),
            max_skew=rule.max_skew,
            from_zero=len(domains) < rule.min_domains,
        )

    def take(self, place: Coordinates, amount: int) -> None:
        """Count more pods of the class at the place."""
        for counter in self._feeds:
            at = place[self._axis[counter.topology.key]]
            if at != -1:
                self._tally(counter).add(at, amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One spread constraint over places that are one certain domain each; a pod is one step up."""

    levels: list[int]
    """Matching pods in each place."""
    least_elsewhere: int | None
    """Matching pods in domains that are none of the places; None if there are none."""
    max_skew: int
    from_zero: bool
    """Whether there are fewer domains than minDomains, so that the least filled counts as empty."""

    def climb(self, capacities: Sequence[int], count: int) -> list[int]:
        """Return what `assign` would give each place, without asking each place for each pod."""
        amounts = [0] * len(self.levels)
        open_places = [(level, i) for i, level in enumerate(self.levels) if capacities[i] > 0]
        heapify(open_places)
        full = [level for level, room in zip(self.levels, capacities, strict=True) if room <= 0]
        lowest = min(
            [*full, *([] if self.least_elsewhere is None else [self.least_elsewhere])], default=None
        )
        for _ in range(count):
            if not open_places:
                break
            level, place = open_places[0]
            least = level if lowest is None else min(level, lowest)
            if level + 1 - (0 if self.from_zero else least) > self.max_skew:
                break
            amounts[place] += 1
            if amounts[place] < capacities[place]:
                heapreplace(open_places, (level + 1, place))
            else:
                heappop(open_places)
                lowest = level + 1 if lowest is None else min(lowest, level + 1)
        return amounts


def assign(
    rules: SharedRules, places: Sequence[Coordinates], capacities: Sequence[int], count: int
) -> list[int]:
    """Return how many of `count` pods go to each place, the emptiest allowed one first.

    Args:
        rules: The class's shared rules; their tallies are updated.
        places: Distinct coordinates, in order of preference if equally full.
        capacities: The most that each place can take for other reasons.
        count: Pods to assign; those that are left over fit nowhere.
    """
    ladder = rules.ladder(places)
    if ladder is not None:
        amounts = ladder.climb(capacities, count)
        for place, amount in zip(places, amounts, strict=True):
            rules.take(place, amount)
        return amounts
    amounts = [0] * len(places)
    left = count
    while left > 0:
        best = rules.emptiest(places, [c - a for c, a in zip(capacities, amounts, strict=True)])
        if best is None:
            break
        taken = min(left, capacities[best] - amounts[best]) if rules.at_once else 1
        rules.take(places[best], taken)
        amounts[best] += taken
        left -= taken
    return amounts


Tallies = dict[int, _Tally]

"""Hostname rules by which classes limit each other on one new node."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import topology_spread
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import Simulation


class NodeRules(NamedTuple):
    """What a pod allows of the others on its node, and which rules count it."""

    obeys: tuple[tuple[int, int], ...] = ()
    """Rules and limits: at most so many pods that count for the rule on its node, including
    itself."""
    counts_for: tuple[int, ...] = ()
    """Rules that count it: its own and those of others."""


NO_RULES = NodeRules()


class CrossingRules:
    """The hostname rules that count pods of classes that do not obey them, or the other way round.

    Where all pods that count for a rule obey it too, it is a cap and no more. An anti-affinity
    allows none of the others' pods on the node; a spread allows maxSkew of them, as other new nodes
    may stay without any. Both hold for the finished node, so that kube-scheduler may schedule the
    pods in any order.

    Attributes:
        stricter: Whether a spread is among them: kube-scheduler lets a node have more when all
            others have some, so that a cheaper purchase may be possible.
    """

    def __init__(self, sim: Simulation, classes: Sequence[PodClass]) -> None:
        limits = _limits_per_node(sim, classes)
        counted: dict[int, set[int]] = {rule: set() for rule in limits}
        for pod_class in classes:
            for fed in counted.keys() & set(map(id, sim.feeds(pod_class))):
                counted[fed].add(pod_class.number)
        every = (rule for pod_class in classes for rule in sim.links(pod_class).spread)
        spreads = {id(rule.counter) for rule in every}
        crossing = [rule for rule, obeying in limits.items() if obeying.keys() != counted[rule]]
        self.stricter = any(counted[rule] for rule in crossing if rule in spreads)
        self._obeys: dict[int, list[tuple[int, int]]] = {}
        self._counts_for: dict[int, list[int]] = {}
        for index, rule in enumerate(crossing if any(counted.values()) else ()):
            for number, most in limits[rule].items():
                self._obeys.setdefault(number, []).append((index, most))
            for number in counted[rule]:
                self._counts_for.setdefault(number, []).append(index)

    def of(self, pod_class: PodClass) -> NodeRules:
        """Return the rules of one class."""
        number = pod_class.number
        if number not in self._obeys and number not in self._counts_for:
            return NO_RULES
        return NodeRules(
            obeys=tuple(self._obeys.get(number, ())),
            counts_for=tuple(self._counts_for.get(number, ())),
        )


def _limits_per_node(sim: Simulation, classes: Iterable[PodClass]) -> dict[int, dict[int, int]]:
    """Return by hostname rule and class how many counted pods a node may have, itself included.

    Rules are given by the `id` of their counter, classes that obey them by their number.
    """
    limits: dict[int, dict[int, int]] = {}
    for pod_class in classes:
        number, links = pod_class.number, sim.links(pod_class)
        rules = [(counter, int(itself)) for counter, itself in links.anti]
        rules += [(rule.counter, rule.max_skew) for rule in links.spread]
        for counter, most in rules:
            if counter.topology.key == HOSTNAME:
                obeying = limits.setdefault(id(counter), {})
                obeying[number] = min(most, obeying.get(number, most))
    return limits


def most_beside_even(sim: Simulation, pod_class: PodClass) -> int | None:
    """Return how many pods of the class a new node may have if all new nodes have as many.

    None for no more than maxSkew, because some node has none or one pod excludes the next. A spread
    by hostname counts from the least filled node: if all existing nodes have pods, new nodes may be
    filled as far; if there are none, as far as they have room. This has to be checked once all pods
    have their places.
    """
    links = sim.links(pod_class)
    rules = [rule for rule in links.spread if rule.counter.topology.key == HOSTNAME]
    if not rules or any(c.topology.key == HOSTNAME and itself for c, itself in links.anti):
        return None
    most = UNLIMITED
    for rule in rules:
        topology_spread.refresh_domains(rule, sim.kinds, sim.topologies, sim.version)
        if not len(rule.present) and rule.min_domains <= 1:
            continue
        least = topology_spread.least_filled(rule)
        if not least:
            return None
        most = min(most, least + rule.max_skew)
    return most


class RulesOfItems:
    """What the rules make of (nodes, items) amounts of pods.

    Args:
        rules: The rules of each item.
    """

    def __init__(self, rules: Sequence[NodeRules]) -> None:
        self._rules = rules
        counted: dict[int, list[int]] = {}
        obeying: dict[int, list[tuple[int, int]]] = {}
        for item, own in enumerate(rules):
            for rule in own.counts_for:
                counted.setdefault(rule, []).append(item)
            for rule, most in own.obeys:
                obeying.setdefault(rule, []).append((item, most))
        self._counted = counted
        self._obeying = {rule: found for rule, found in obeying.items() if rule in counted}

    def __bool__(self) -> bool:
        return bool(self._obeying)

    def allow(self, amounts: IntArray) -> BoolArray:
        """Return (nodes,) whether no rule forbids this combination of pods on the node."""
        allowed = np.ones(len(amounts), dtype=np.bool_)
        for rule, obeying in self._obeying.items():
            held = amounts[:, self._counted[rule]].sum(axis=1)
            for item, most in obeying:
                allowed &= (amounts[:, item] == 0) | (held <= most)
        return allowed

    def room(self, amounts: IntArray, item: int) -> IntArray:
        """Return (nodes,) how many more pods of the item the rules allow on each node."""
        room = np.full(len(amounts), UNLIMITED, dtype=np.int64)
        own = self._rules[item]
        for rule, most in own.obeys:
            held = amounts[:, self._counted.get(rule, [])].sum(axis=1)
            if rule in own.counts_for:
                np.minimum(room, most - held, out=room)
            else:
                room[held > most] = 0
        for rule in own.counts_for:
            held = amounts[:, self._counted[rule]].sum(axis=1)
            for other, most in self._obeying.get(rule, ()):
                there = amounts[:, other] > 0
                room[there] = np.minimum(room[there], most - held[there])
        return np.asarray(np.maximum(room, 0))

    def kept(self, amounts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the amounts without the pods that break a rule, in two ways.

        Returns:
            (nodes, items) without the pods that obey the rule; (nodes, items) without those that it
            counts.
        """
        without_obeying, without_counted = amounts.copy(), amounts.copy()
        for rule, obeying in self._obeying.items():
            counted = self._counted[rule]
            for item, most in obeying:
                held = without_obeying[:, counted].sum(axis=1)
                without_obeying[held > most, item] = 0
                broken = (without_counted[:, counted].sum(axis=1) > most) & (
                    without_counted[:, item] > 0
                )
                others = [other for other in counted if other != item]
                without_counted[np.ix_(broken, others)] = 0
                if item in counted:
                    without_counted[broken, item] = np.minimum(without_counted[broken, item], most)
        return without_obeying, without_counted

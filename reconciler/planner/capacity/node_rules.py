"""Hostname rules by which classes limit each other on one new node."""

from collections.abc import Sequence
from typing import NamedTuple

from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import Simulation


class NodeRules(NamedTuple):
    """What a pod asks of the others on its node, and which of their rules count it."""

    obeys: tuple[tuple[int, int], ...] = ()
    """Rules and limits: on its node at most so many pods count for the rule, itself included."""
    counts_for: tuple[int, ...] = ()
    """Rules that count it, its own and those of others."""


NO_RULES = NodeRules()


class CrossingRules:
    """The hostname rules that count pods of classes that do not obey them, or the other way round.

    Where all pods that count for a rule obey it too, it is a cap and no more. An anti-affinity
    allows none of the others' pods on the node; a spread allows maxSkew of them, as other new
    nodes may stay without any. Both hold for the whole node at the end, so that the pods find
    their places in whatever order kube-scheduler comes to them.
    """

    def __init__(self, sim: Simulation, classes: Sequence[PodClass]) -> None:
        linked = [(pod_class.number, sim.links(pod_class)) for pod_class in classes]
        limits: dict[int, dict[int, int]] = {}
        for number, links in linked:
            rules = [(counter, int(itself)) for counter, itself in links.anti]
            rules += [(rule.counter, rule.max_skew) for rule in links.spread]
            for counter, most in rules:
                if counter.topology.key == HOSTNAME:
                    obeying = limits.setdefault(id(counter), {})
                    obeying[number] = min(most, obeying.get(number, most))
        counted: dict[int, set[int]] = {rule: set() for rule in limits}
        for number, links in linked:
            for feed in links.feeds:
                if id(feed.counter) in counted:
                    counted[id(feed.counter)].add(number)
        crossing = [rule for rule, obeying in limits.items() if obeying.keys() != counted[rule]]
        self._obeys: dict[int, list[tuple[int, int]]] = {}
        self._counts_for: dict[int, list[int]] = {}
        for index, rule in enumerate(crossing if any(counted.values()) else ()):
            for number, most in limits[rule].items():
                self._obeys.setdefault(number, []).append((index, most))
            for number in counted[rule]:
                self._counts_for.setdefault(number, []).append(index)

    def of(self, pod_class: PodClass) -> NodeRules:
        """The rules of one class."""
        number = pod_class.number
        if number not in self._obeys and number not in self._counts_for:
            return NO_RULES
        return NodeRules(
            obeys=tuple(self._obeys.get(number, ())),
            counts_for=tuple(self._counts_for.get(number, ())),
        )

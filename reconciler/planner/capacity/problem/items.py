"""From pending classes to items: which offers each may use, and in which topology domain.

Rules on shared domains (zones) are settled before packing: pods are dealt out to places, and an
item is the part of a class that goes to one place. Rules per hostname become caps per node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.problem.dealing import Dealing
from reconciler.planner.capacity.problem.node_rules import CrossingRules
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.problem import Item
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtItems:
    """Items to pack, caps per node, and what must be placed pod by pod."""

    items: tuple[Item, ...]
    caps: tuple[int, ...]
    singly: tuple[Want, ...]
    """Classes whose rules depend on each other's nodes (affinity by hostname)."""
    stricter: bool
    """Whether a rule of the items is stricter than kube-scheduler's."""


def deal(sim: Simulation, wants: Sequence[Want], table: OfferTable) -> DealtItems:
    """Deal every class out to the places where it may go."""
    classes = [pod_class for pod_class, _ in wants]
    caps, crossing = _Caps(sim, classes), CrossingRules(sim, classes)
    singly = [want for want in wants if _goes_singly(sim, want[0], table)]
    apart = {pod_class.number for pod_class, _ in singly}
    together = [want for want in wants if want[0].number not in apart]
    items: list[Item] = []
    for (pod_class, _), parts in zip(together, Dealing(sim, together, table).parts(), strict=True):
        groups, rules = caps.groups_of(pod_class), crossing.of(pod_class)
        fit = table.fit(pod_class)
        for amount, allowed in parts:
            slots = np.where(allowed, fit.slots, 0)
            items.append(
                Item(pod_class=pod_class, count=amount, slots=slots, groups=groups, rules=rules)
            )
    return DealtItems(
        items=tuple(items), caps=caps.values, singly=tuple(singly), stricter=crossing.stricter
    )


def _goes_singly(sim: Simulation, pod_class: PodClass, table: OfferTable) -> bool:
    """Return whether its pods are bought for one by one.

    They are if they must be near pods on one node, or in a zone that EC2 has yet to choose.
    """
    keys = tuple(sorted({c.topology.key for c in sim.links(pod_class).affinity}))
    if not keys or HOSTNAME in keys:
        return bool(keys) and not _daemons_suffice(sim, pod_class, table)
    return any(min(place) < -1 for place, _ in table.places(pod_class, keys))


def _daemons_suffice(sim: Simulation, pod_class: PodClass, table: OfferTable) -> bool:
    """Return whether every node for the class comes with a daemon's pod that it must be near."""
    links = sim.links(pod_class)
    if not links.near_daemons:
        return False
    asked = {id(counter) for counter in links.affinity}
    offers = [table.offers[i] for i in table.feasible(pod_class).nonzero()[0].tolist()]
    brought = {id(o.node.row.daemons): o.node.row.daemons for o in offers}
    return all(
        any(asked <= set(map(id, sim.feeds(sim.table.of_daemon(d)))) for d in pods)
        for pods in brought.values()
    )


class _Caps:
    """Hostname rules as caps: at most so many pods of a group on one new node.

    A new node starts empty and other new nodes may stay without pods of the group, so a spread by
    hostname allows maxSkew of them and an anti-affinity one. Only classes that obey a rule and
    count for it are capped; if others count for it too, `CrossingRules` has the whole rule.
    """

    def __init__(self, sim: Simulation, classes: Sequence[PodClass]) -> None:
        self._limits: dict[int, int] = {}
        self._users: dict[int, set[int]] = {}
        for pod_class in classes:
            links = sim.links(pod_class)
            for counter, itself in links.anti:
                if itself:
                    self._note(id(counter), counter.topology.key, pod_class, 1)
            for rule in links.spread:
                if rule.counts_itself:
                    self._note(
                        id(rule.counter), rule.counter.topology.key, pod_class, rule.max_skew
                    )
        self._numbers = {counter: i for i, counter in enumerate(self._limits)}
        self.values = tuple(self._limits.values())

    def _note(self, counter: int, key: str, pod_class: PodClass, limit: int) -> None:
        if key == HOSTNAME:
            self._limits[counter] = min(limit, self._limits.get(counter, limit))
            self._users.setdefault(counter, set()).add(pod_class.number)

    def groups_of(self, pod_class: PodClass) -> tuple[int, ...]:
        """Return the caps that apply to the class."""
        return tuple(
            self._numbers[counter]
            for counter, users in self._users.items()
            if pod_class.number in users
        )

"""What the places of some pods leave to other pods of the purchase that have none yet."""

from collections.abc import Sequence

from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import Coordinates, SharedRules, Tallies
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.links import Links
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.placement.topology import Topology

LOOKS_MAX = 5_000
"""How many places of others are examined for one purchase; after that none is spared for them.

One tenant's rules must not take the time of all.
"""


class UndealtClasses:
    """The classes of a purchase that are still to be dealt out, by the rules that they obey."""

    def __init__(self, sim: Simulation, classes: Sequence[PodClass], table: OfferTable) -> None:
        self._sim = sim
        self._table = table
        self._waiting: dict[int, set[int]] = {}
        """By the `id` of a counter, the numbers of the classes that obey it."""
        self._away: dict[int, list[PodClass]] = {}
        """By the `id` of a counter, the classes that keep away from what it counts."""
        self._looks = 0
        for pod_class in classes:
            links = sim.links(pod_class)
            for counter in self._looked_at(links):
                self._waiting.setdefault(counter, set()).add(pod_class.number)
            for counter in {id(c) for c, _ in links.anti if c.topology.key != HOSTNAME}:
                self._away.setdefault(counter, []).append(pod_class)

    @staticmethod
    def _looked_at(links: Links) -> set[int]:
        own = [counter for counter, _ in links.anti] + [rule.counter for rule in links.spread]
        return {id(c) for c in (*own, *links.affinity) if c.topology.key != HOSTNAME}

    def dealt(self, pod_class: PodClass) -> None:
        """Remove a class that has its places."""
        for counter in self._looked_at(self._sim.links(pod_class)):
            self._waiting[counter].discard(pod_class.number)

    def may_go_anywhere(self, pod_class: PodClass) -> bool:
        """Return whether it matters little where the class goes.

        That is so if only pods with places exclude it from some, and no class that is left obeys
        counters of it.
        """
        links = self._sim.links(pod_class)
        if self._looked_at(links):
            return False
        return not any(self._waiting.get(id(c)) for c in self._sim.feeds(pod_class))

    def lost(
        self,
        pod_class: PodClass,
        keys: Sequence[str],
        place: Coordinates,
        tallies: Tallies,
    ) -> tuple[int, int]:
        """Return what others that must keep away from the class lose by a pod of it in the place.

        Returns:
            How many of these classes lose their last place, and how many places all of them lose.
        """
        classes, places = 0, 0
        for counter in self._sim.feeds(pod_class):
            topology = counter.topology
            if topology.key not in keys:
                continue
            here = _domains(topology, place[keys.index(topology.key)])
            for other in self._away.get(id(counter), ()):
                if other.number not in self._waiting[id(counter)] or other is pod_class:
                    continue
                open_to = self._open_to(other, topology.key, tallies)
                taken = [at for at in open_to if not here.isdisjoint(_domains(topology, at))]
                places += len(taken)
                classes += bool(taken) and len(taken) == len(open_to)
        return classes, places

    def _open_to(self, pod_class: PodClass, key: str, tallies: Tallies) -> list[int]:
        """Return the places by this key that others' pods still leave to the class."""
        found = self._table.places(pod_class, (key,))
        self._looks += len(found)
        if self._looks > LOOKS_MAX:
            return []
        rules = SharedRules(self._sim, pod_class, (key,), tallies)
        return [place[0] for place, _ in found if not rules.kept_apart(place)]


def _domains(topology: Topology, at: int) -> frozenset[int]:
    return frozenset(topology.choices[-2 - at] if at < -1 else (at,))

"""What the places of some pods leave to others of the purchase that have none yet."""

from collections.abc import Sequence

from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import Coordinates, SharedRules, Tallies
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.links import Links
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.placement.topology import Topology

LOOKS_MAX = 5_000
"""Places of others looked at for one purchase; beyond it nothing is spared for them. One tenant's
rules must not take the time of all."""


class Others:
    """The classes of a purchase that have yet to be dealt out, by the rules that they obey."""

    def __init__(self, sim: Simulation, classes: Sequence[PodClass], table: OfferTable) -> None:
        self._sim = sim
        self._table = table
        self._waiting: dict[int, set[int]] = {}
        """By the identity of a counter the numbers of the classes that look at it."""
        self._away: dict[int, list[PodClass]] = {}
        """By the identity of a counter the classes that keep away from what it counts."""
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
        """Take a class out that has its places."""
        for counter in self._looked_at(self._sim.links(pod_class)):
            self._waiting[counter].discard(pod_class.number)

    def may_go_anywhere(self, pod_class: PodClass) -> bool:
        """Whether pods with places alone keep the class out of some, and no others look at it."""
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
        """Return what others lose that must keep away from the class, once a pod of it is there.

        Returns:
            How many of these classes have no place then that still had one, and how many places
            all of them lose.
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

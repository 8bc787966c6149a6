"""How many pods that a spread by hostname counts a new node may have if all nodes have as many.

A spread by hostname counts from the least filled node, so that nodes which fill up together may
have more than maxSkew pods each: as many as the existing nodes have, and where there are none, as
many as is cheapest. Whether the purchase keeps to the spread is checked once its pods have places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.problem.node_rules import most_beside_even
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.refused_by_spreads import shared_spreads
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.simulation import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenCaps:
    """Caps per node for classes of pods that spread by hostname."""

    most: Mapping[int, int]
    """By class number; without the classes whose nodes may have maxSkew pods and no more."""
    offers: BoolArray | None = None
    """(offers,) whose nodes hold as many; None for all. One smaller node would keep all others from
    more pods than it has."""
    nano_usd: int | None = None
    """About what the nodes cost if filled so; None if that is not known."""

    @property
    def unlimited(self) -> bool:
        """Return whether no node has any such pods, nor a cap."""
        return bool(self.most) and min(self.most.values()) >= UNLIMITED


def even_caps(sim: Simulation, wants: Sequence[Want], table: OfferTable) -> EvenCaps:
    """Return the caps with which pods that spread by hostname may be cheaper to buy for.

    Where no node has such pods yet, equal pods that are bought for alone have the cap of the
    cheapest equal nodes. With others kube-scheduler may fill the first node that joins with those,
    and it then counts as the least filled one for good: such pods have no cap (`unlimited`).
    """
    even = {pod_class.number: most_beside_even(sim, pod_class) for pod_class, _ in wants}
    most = {number: cap for number, cap in even.items() if cap is not None}
    if len(wants) == 1 and min(most.values(), default=0) >= UNLIMITED:
        return _from_nothing(sim, *wants[0], table)
    return EvenCaps(most=most)


def _from_nothing(sim: Simulation, pod_class: PodClass, count: int, table: OfferTable) -> EvenCaps:
    """Return the cap of the cheapest equal nodes for these pods, if it is more than one pod.

    Where no fleet may have so many nodes, there is no cap.
    """
    slots = np.where(table.feasible(pod_class), table.slots(pod_class), 0)
    places = min(count, _places(sim, pod_class, table))
    nodes = -(-count // np.maximum(slots, 1))
    nodes = -(-nodes // places) * places
    limits = np.array([offer.most for offer in table.offers], dtype=np.int64)
    possible = ((slots > 0) & (nodes <= places * limits)).nonzero()[0]
    if not len(possible):
        return EvenCaps(most={pod_class.number: UNLIMITED})
    costs = nodes[possible] * table.prices[possible]
    best = np.lexsort((nodes[possible], costs))[0]
    level = -(-count // int(nodes[possible[best]]))
    if level <= 1:
        return EvenCaps(most={})
    return EvenCaps(
        most={pod_class.number: level}, offers=slots >= level, nano_usd=int(costs[best])
    )


def _places(sim: Simulation, pod_class: PodClass, table: OfferTable) -> int:
    """Return over how many zones, or other places, new nodes for the class are spread."""
    rules = shared_spreads(sim, pod_class)
    keys = tuple(sorted({rule.counter.topology.key for rule in rules}))
    return max(1, len(table.places(pod_class, keys))) if keys else 1

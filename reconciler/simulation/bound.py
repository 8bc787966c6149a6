"""A lower bound on what demand could have cost, which no autoscaler can undercut.

At each moment the running pods need nodes whose resources cover their requests. Relaxed to
fractions of nodes, separately for each resource, the lowest cost is the value of a linear program.
By duality it is also the highest value of the demand at prices of resources at which no node is
worth more than it costs. That value is convex and grows in proportion with demand, so the value of
an hour's mean demand is at most the mean of its values (Jensen): one program per hour bounds the
hour. Boots, idle time, packing and pods of DaemonSets, of which there are as many as nodes, are
left out: the bound is proven and rarely reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.adapters.memory.scheduling import admits
from reconciler.model.cluster import PodSpec
from reconciler.planner.capacity.bounds.lp import maximise
from reconciler.simulation.offers import Offer, zones_of

HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class _Column:
    """Offers that are equal for every pod: the lowest price counts."""

    usd_per_hour: float
    allocatable: Mapping[str, int]


class CostBound:
    """Computes the bound of hours of demand.

    Args:
        offers: What could be bought.
    """

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._nodes = [
            (number, offer.node(zone))
            for number, offer in enumerate(offers)
            for zone in zones_of(offer.fleet, offer.region)
        ]
        self._columns = [_Column(each.usd_per_hour, each.allocatable) for each in offers]
        self._takers: dict[int, tuple[PodSpec, frozenset[int]]] = {}

    def takers(self, spec: PodSpec) -> frozenset[int]:
        """Return the offers on which such a pod could run, by number."""
        known = self._takers.get(id(spec))
        if known is None:
            found = frozenset(
                number
                for number, node in self._nodes
                if admits(node, spec)
                and all(node.allocatable.get(k, 0) >= n for k, n in spec.requests.items())
            )
            known = self._takers[id(spec)] = (spec, found)
        return known[1]

    def usd(self, pod_seconds: Mapping[PodSpec, float]) -> float:
        """Return the lowest cost of one hour with this many pod-seconds."""
        demand: dict[frozenset[int], dict[str, float]] = {}
        for spec, seconds in pod_seconds.items():
            takers = self.takers(spec)
            if takers:
                amounts = demand.setdefault(takers, {})
                for name, amount in spec.requests.items():
                    amounts[name] = amounts.get(name, 0.0) + amount * seconds / HOUR_SECONDS
        return self._value(demand) if demand else 0.0

    def _value(self, demand: Mapping[frozenset[int], Mapping[str, float]]) -> float:
        """Return the value of demand at the best prices of resources: the dual program.

        Variables are a price per group and resource, and one per offer and resource, which limits
        the price of each group that may use the offer. Amounts are scaled so that prices are near
        1.
        """
        names = sorted({name for amounts in demand.values() for name in amounts})
        scale = {
            name: max(1.0, *(amounts.get(name, 0.0) for amounts in demand.values()))
            for name in names
        }
        groups = sorted(demand, key=sorted)
        used = sorted(frozenset().union(*groups))
        wide = len(names)
        count = (len(groups) + len(used)) * wide
        objective = np.zeros(count)
        rows: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
        limits: list[float] = []
        place = {number: (len(groups) + index) * wide for index, number in enumerate(used)}
        for index, group in enumerate(groups):
            for at, name in enumerate(names):
                objective[index * wide + at] = demand[group].get(name, 0.0) / scale[name]
                for number in sorted(group):
                    row = np.zeros(count)
                    row[index * wide + at], row[place[number] + at] = 1.0, -1.0
                    rows.append(row)
                    limits.append(0.0)
        for number in used:
            row = np.zeros(count)
            for at, name in enumerate(names):
                row[place[number] + at] = (
                    self._columns[number].allocatable.get(name, 0) / scale[name]
                )
            rows.append(row)
            limits.append(self._columns[number].usd_per_hour)
        best = maximise(objective, np.array(rows), np.array(limits))
        return float(objective @ best)

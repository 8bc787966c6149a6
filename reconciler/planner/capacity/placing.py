"""Puts a packing into the what-if cluster: its nodes, and the pods that fit by every rule."""

import numpy as np

from reconciler.planner.capacity.problem.dealing import WAVES_MAX
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.capacity.problem.purchase import PlacedPods, Purchase, priced_row
from reconciler.planner.placement.arrays import UNLIMITED, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import local_room, rules_room
from reconciler.planner.placement.filters.inter_pod_affinity import affinity_room
from reconciler.planner.placement.simulation import Simulation


class PackingPlacer:
    """Adds the rows of a packing to the simulation and places the items on them."""

    def __init__(self, sim: Simulation, table: OfferTable) -> None:
        self._sim = sim
        self._table = table

    def place(self, problem: Problem, packing: Packing) -> Purchase:
        """Add the nodes and place the pods that fit by every rule; the others stay unserved."""
        purchase = Purchase(rows=[], taken=[], left=[], over_limits=False)
        row_of = np.zeros(len(packing.bins), dtype=np.int64)
        for number in sorted({int(b) for b in packing.bins}):
            offer = problem.offers[number]
            bins = (packing.bins == number).nonzero()[0]
            first = self._sim.add_row(priced_row(offer), len(bins))
            row_of[bins] = np.arange(first, first + len(bins))
            purchase.rows += [(first + i, offer.node) for i in range(len(bins))]
        contents = packing.contents
        by_item = np.argsort(contents.items, kind="stable")
        ends = np.searchsorted(contents.items[by_item], np.arange(len(problem.items) + 1))
        parts = [
            (item.pod_class, row_of[contents.nodes[entries]], contents.pods[entries])
            for item, begin, end in zip(problem.items, ends, ends[1:], strict=False)
            if len(entries := by_item[begin:end])
        ]
        # Pods that must be near others are placed after these.
        parts.sort(key=lambda part: bool(self._sim.links(part[0]).affinity))
        for _ in range(WAVES_MAX):
            later = [part for part in parts if not self._place_item(purchase, *part)]
            if not later or len(later) == len(parts):
                break
            parts = later
        return purchase

    def _place_item(
        self, purchase: Purchase, pod_class: PodClass, rows: IntArray, amounts: IntArray
    ) -> bool:
        """Place an item; return False while its pods must be near others that have no place yet.

        Packing has checked all resources, but only some of the rules between classes, so all are
        checked here.
        """
        links = self._sim.links(pod_class)
        if links.lacks_neighbour:
            return False
        if pod_class.volumes.shared:
            amounts = np.minimum(amounts, local_room(self._sim, pod_class)[rows])
        elif not links.plain:
            most = np.full(self._sim.rows, UNLIMITED, dtype=np.int64)
            amounts = np.minimum(amounts, rules_room(self._sim, pod_class, most)[rows])
        if links.affinity:
            most = np.full(self._sim.rows, UNLIMITED, dtype=np.int64)
            amounts = np.minimum(amounts, affinity_room(links, most)[rows])
        rows, amounts = rows[amounts > 0], amounts[amounts > 0]
        self._sim.place(pod_class, rows, amounts)
        purchase.taken.append(PlacedPods(pod_class=pod_class, rows=rows, amounts=amounts))
        return True

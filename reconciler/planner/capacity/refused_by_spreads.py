"""Takes pods out of a purchase that kube-scheduler would refuse for a spread over zones.

Pods are dealt out to zones before it is known which nodes are bought. If a limit leaves out the
nodes of one zone, there are too many pods in the others; and the pods of DaemonSets on new nodes
may count for the spread as well.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import PlacedPods, Purchase, by_class, drop_empty
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill_evenly
from reconciler.planner.placement.filters import topology_spread
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.links import SpreadRule
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.placement.topology import uncertain_rows

_TIMES_MAX = 16
"""How often nodes are removed: each takes its daemons' pods along, which may leave more pods
refused."""
_ROUNDS_MAX = 64
"""How many rounds of binding are made: pods in one zone make room for others in the next.

More rounds gain little, and pods that are left are planned again.
"""


def shared_spreads(sim: Simulation, pod_class: PodClass) -> list[SpreadRule]:
    """Return the class's spreads over domains that several nodes share, such as zones."""
    if not pod_class.spread:
        return []
    return [rule for rule in sim.links(pod_class).spread if rule.counter.topology.key != HOSTNAME]


def counts_daemons(sim: Simulation, classes: Iterable[PodClass], nodes: Iterable[NewNode]) -> bool:
    """Return whether a spread over zones of the classes counts daemons' pods of new nodes."""
    daemons = {id(node.row.daemons): node.row.daemons for node in nodes if node.row.daemons}
    if not daemons:
        return False
    counters = {
        id(rule.counter) for pod_class in classes for rule in shared_spreads(sim, pod_class)
    }
    return bool(counters) and any(
        id(counter) in counters
        for pods in daemons.values()
        for pod in pods
        for counter in sim.feeds(sim.table.of_daemon(pod))
    )


def withdraw_refused(
    sim: Simulation, mark: tuple[int, int], table: OfferTable, purchase: Purchase
) -> list[Want]:
    """Take pods that spreads refuse out of the purchase, with the nodes that only they needed.

    Args:
        sim: The simulation, with the purchase.
        mark: Its state before the purchase.
        table: The offers.
        purchase: What was bought; nodes that are empty already stay.

    Returns:
        What was removed.
    """
    withdrawn: list[Want] = []
    for _ in range(_TIMES_MAX):
        empty = purchase.empty_rows()
        refused = _refused(sim, purchase)
        if not refused:
            break
        withdrawn += refused
        drop_empty(sim, mark, table, purchase, but=empty)
    return withdrawn


def _refused(sim: Simulation, purchase: Purchase) -> list[Want]:
    """Take pods that spreads refuse out of the purchase; return them.

    If domains have too many pods, all of them are placed again as kube-scheduler would bind them,
    higher priorities first. Equal pods may be bound in any order; one of these is promised, in
    which pods of a spread come before others that it may count. Pods on a node whose zone EC2 has
    yet to choose stay.
    """
    parts = by_class(purchase)
    if not any(_too_many(sim, part) for part in parts):
        return []
    for part in parts:
        sim.place(part.pod_class, part.rows, -part.amounts)
    parts = _needed_first(purchase, parts)
    waiting = [part.amounts for part in parts]
    spread: list[int] = []
    by_priority = sorted(range(len(parts)), key=lambda at: -parts[at].pod_class.spec.priority)
    for _, level in groupby(by_priority, key=lambda at: parts[at].pod_class.spec.priority):
        others: list[int] = []
        for at in level:
            (spread if shared_spreads(sim, parts[at].pod_class) else others).append(at)
        _bind_in_rounds(sim, parts, waiting, spread)
        for at in others:
            sim.place(parts[at].pod_class, parts[at].rows, waiting[at])
            waiting[at] = np.zeros_like(waiting[at])
        _bind_in_rounds(sim, parts, waiting, spread)
    purchase.taken = [_reduced(part, left) for part, left in zip(parts, waiting, strict=True)]
    return [
        (part.pod_class, int(left.sum()))
        for part, left in zip(parts, waiting, strict=True)
        if left.any()
    ]


def _bind_in_rounds(
    sim: Simulation, parts: Sequence[PlacedPods], waiting: list[IntArray], numbers: Sequence[int]
) -> None:
    """Place pending pods of these parts as far as spreads allow, in rounds."""
    for _ in range(_ROUNDS_MAX):
        asked = [at for at in numbers if waiting[at].any()]
        bound = {at: _bound(sim, parts[at], waiting[at]) for at in asked}
        if not any(amounts.any() for amounts in bound.values()):
            break
        for at, amounts in bound.items():
            waiting[at] = waiting[at] - amounts


def _too_many(sim: Simulation, part: PlacedPods) -> bool:
    """Return whether a domain of the pods exceeds the skew of one of their spreads."""
    for rule in shared_spreads(sim, part.pod_class):
        topology_spread.refresh_domains(rule, sim.kinds, sim.topologies, sim.version)
        excess = topology_spread.excess(rule, part.rows)
        if ((excess > 0) & (part.amounts > 0) & ~_open(part, [rule])).any():
            return True
    return False


def _open(part: PlacedPods, rules: Iterable[SpreadRule]) -> BoolArray:
    """Return (rows,) whether EC2 has yet to choose the row's domain by one of the rules."""
    found = np.zeros(len(part.rows), dtype=np.bool_)
    for rule in rules:
        found |= uncertain_rows(rule.counter.topology)[part.rows]
    return found


def _needed_first(purchase: Purchase, parts: Sequence[PlacedPods]) -> list[PlacedPods]:
    """Return the parts with those rows first that others need, then the cheapest per pod.

    What is removed comes from the last rows, so that nodes are saved.
    """
    prices = {row: node.compared_nano_usd for row, node in purchase.rows}
    users = Counter(row for part in parts for row in part.rows.tolist())
    found = []
    for part in parts:
        rows = zip(part.rows.tolist(), part.amounts.tolist(), strict=True)
        price = [
            0 if users[row] > 1 else prices.get(row, 0) / max(1, amount) for row, amount in rows
        ]
        order = np.argsort(np.array(price, dtype=np.float64), kind="stable")
        found.append(replace(part, rows=part.rows[order], amounts=part.amounts[order]))
    return found


def _bound(sim: Simulation, part: PlacedPods, waiting: IntArray) -> IntArray:
    """Place the pending pods of the part on their rows as far as spreads allow.

    Returns:
        How many on each row of the part.
    """
    rules = shared_spreads(sim, part.pod_class)
    bound = np.where(_open(part, rules), waiting, 0)
    if bound.any():
        sim.place(part.pod_class, part.rows, bound)
    count = int((waiting - bound).sum())
    if count:
        room = np.zeros(sim.rows, dtype=np.int64)
        room[part.rows] = waiting - bound
        keys = tuple(sorted({rule.counter.topology.key for rule in rules}))
        found = np.zeros(sim.rows, dtype=np.int64)
        for row, amount in fill_evenly(sim, part.pod_class, count, room, part.rows, keys):
            found[row] += amount
        bound = bound + found[part.rows]
    return bound


def _reduced(part: PlacedPods, amounts: IntArray) -> PlacedPods:
    """Return the part with fewer pods, on the rows that still have some."""
    kept = part.amounts - amounts
    return replace(part, rows=part.rows[kept > 0], amounts=kept[kept > 0])

"""Writes a purchase into the plan: places of its pods, targets of the fleets, and why they rise."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter

import numpy as np

from reconciler.model.ids import FleetKey, Region
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.builder_values import TargetReason
from reconciler.planner.capacity.problem.purchase import Purchase
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.offers import evened_out_with, preferred_less
from reconciler.planner.reservations import Reservation, WaitingClass


def record(builder: PlanBuilder, classes: Sequence[WaitingClass], purchase: Purchase) -> None:
    """Raise targets for the bought rows and reserve their places for the pods."""
    builder.purchases.left_out_classes |= purchase.left_out_classes
    pods = np.zeros(builder.sim.rows, dtype=np.int64)
    for taken in purchase.taken:
        np.add.at(pods, taken.rows, taken.amounts)
    by_number, before = {w.pod_class.number: w for w in classes}, len(builder.reservations)
    for taken in purchase.taken:
        waiting = by_number[taken.pod_class.number]
        builder.reserve(waiting, taken.rows.tolist(), taken.amounts.tolist())
    displaced = _displaced_on(builder, builder.reservations[before:])
    for node, bought in groupby(purchase.rows, key=itemgetter(1)):
        rows, key = [row for row, _ in bought], node.key
        builder.plan_new_nodes(key, rows)
        cost = node.nano_usd_per_hour * len(rows)
        moved = sum(displaced[row] for row in rows) if displaced else 0
        builder.purchases.add(key, len(rows), int(pods[rows].sum()), cost, displaced=moved)
        target = builder.size_of(key) + len(rows)
        builder.raise_target(key, target, *_reason(builder, key))


def _displaced_on(builder: PlanBuilder, made: Sequence[Reservation]) -> Counter[int]:
    """Return how many pods of nodes that EC2 takes back go to each row."""
    found: Counter[int] = Counter()
    displaced = builder.view.displaced
    for row, pods in chain.from_iterable(reservation.by_row() for reservation in made if displaced):
        found[row] += sum(pod.key in displaced for pod in pods)
    return found


def _preferred(builder: PlanBuilder, status: FleetStatus) -> Region:
    """Return the first choice of region for the demand that this fleet serves."""
    own = status.settings.regions
    return own[0] if own[0] != status.key.region else builder.view.settings.home_region


def _reason(builder: PlanBuilder, key: FleetKey) -> TargetReason:
    """Return why demand raises the target, by all pods for which the fleet was asked so far."""
    status, purchases = builder.view.statuses[key], builder.purchases
    pods, moved = purchases.pods[key], purchases.displaced[key]
    verb = "needs" if pods == 1 else "need"
    who = [counted_noun(pods - moved, "pending pod")] if pods > moved else []
    who += [f"{counted_noun(moved, 'pod')} of interrupted nodes"] if moved else []
    because = f"{' and '.join(who)} {verb} {counted_noun(purchases.nodes[key], 'more node')}"
    because += preferred_less(builder, status) + evened_out_with(builder, status)
    if status.tier:
        return TargetReason(
            "overflow", f"{because}, which {_preferred(builder, status)} cannot give now"
        )
    return TargetReason("scale-up", because)

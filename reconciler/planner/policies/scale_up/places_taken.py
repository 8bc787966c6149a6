"""Nodes that joined for some pods and were filled by others (docs/failures.md).

kube-scheduler puts any pod that fits on a new node, not only those for which it was asked for. The
purchase is then repeated. It is no evidence against the fleet and does not count as a strike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.cluster import Pod
from reconciler.model.ids import FleetKey
from reconciler.model.text import counted_noun, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.demand import SectorFinder
from reconciler.planner.purchases import PlacesTaken
from reconciler.planner.reservations import WaitingClass

SHOWN_PODS = 3
"""How many pods are named; the others are counted."""
REPEATED_AT_ONCE_FOR = timedelta(minutes=10)
"""For this long after the first purchase it is repeated without a pause."""
PAUSE_MAX = timedelta(minutes=30)
"""The longest pause between purchases whose nodes pods of other sectors fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledNode:
    """The fleet of a node, when the node joined, and the pods that fill it."""

    fleet: str
    joined_at: datetime
    pods: list[Pod]


def note_places_taken(
    builder: PlanBuilder,
    waiting: Iterable[WaitingClass],
    taken: Sequence[FilledNode],
    bought_at: datetime,
) -> None:
    """Record which pods filled nodes bought for others; pause while those are of other sectors.

    Pods of other sectors may have no fleet of their own that can grow. Without a pause each of them
    would cause one more node of a fleet that serves none of its own pods.
    """
    view = builder.view
    finder = SectorFinder(view.settings)
    found = _described(finder, taken)
    for waiting_class in waiting:
        if not waiting_class.left:
            continue
        number = waiting_class.pod_class.number
        builder.purchases.places_taken[number] = found
        foreign = [
            t.joined_at for t in taken if _has_foreign(finder, t.pods, waiting_class.sectors)
        ]
        if foreign:
            until = _pause_until(max(foreign), bought_at)
            if view.at < until:
                builder.purchases.awaiting_bind[number] = (
                    f"{found.short} since {rfc3339(bought_at)}: more nodes are asked for from "
                    f"{rfc3339(until)} on"
                )


def places_taken_of(builder: PlanBuilder, key: FleetKey) -> PlacesTaken | None:
    """Return who took the places of the pods for which this plan asks the fleet for new nodes.

    Of several classes of pods the first one is described, and the others are counted.
    """
    numbers = {
        reservation.waiting.pod_class.number
        for reservation in builder.reservations
        if reservation.waiting.pod_class.number in builder.purchases.places_taken
        and any(_is_new(builder, row, key) for row in reservation.rows)
    }
    found = [builder.purchases.places_taken[number] for number in sorted(numbers)]
    if len(found) <= 1:
        return found[0] if found else None
    more = f"; the same for {counted_noun(len(found) - 1, 'other kind')} of pods"
    first = min(found, key=lambda each: each.named)
    return PlacesTaken(short=first.short + more, named=first.named + more)


def _is_new(builder: PlanBuilder, row: int, key: FleetKey) -> bool:
    """Return whether the row is a node that this plan asks the fleet for."""
    planned = builder.planned_nodes.get(row)
    return planned is not None and not planned.launching and planned.key == key


def _pause_until(latest: datetime, bought_at: datetime) -> datetime:
    """Return until when nothing is bought; it grows with the time that the competition lasts."""
    lasted = latest - bought_at
    return latest + min(PAUSE_MAX, max(timedelta(0), lasted - REPEATED_AT_ONCE_FOR))


def _has_foreign(finder: SectorFinder, pods: Iterable[Pod], sectors: Sequence[str]) -> bool:
    """Return whether one of the pods is of none of these sectors."""
    return any(not set(sectors) & set(finder.served_by(pod.spec)) for pod in pods)


def _described(finder: SectorFinder, taken: Sequence[FilledNode]) -> PlacesTaken:
    """Return in words who took the places, with names for operators and without for tenants."""
    pods = sorted(
        (pod for filled_node in taken for pod in filled_node.pods), key=lambda pod: pod.key
    )
    sectors = sorted({_sector(finder, pod) for pod in pods})
    fleets = ", ".join(sorted({filled_node.fleet for filled_node in taken}))
    joined = f"{counted_noun(len(taken), 'node')} of {fleets} joined for such pods"
    whole = f"{joined} and other pods took the place"
    names = ", ".join(f"{pod.key} ({_sector(finder, pod)})" for pod in pods[:SHOWN_PODS])
    more = f" and {len(pods) - SHOWN_PODS} more" if len(pods) > SHOWN_PODS else ""
    return PlacesTaken(
        short=f"{joined} and {counted_noun(len(pods), 'pod')} of {', '.join(sectors)} took the "
        "place",
        named=f"{whole}: {names}{more}",
    )


def _sector(finder: SectorFinder, pod: Pod) -> str:
    """Return the pod's sector in words."""
    named = finder.sectors_of(pod.spec)
    if not named:
        return "no sector"
    return f"sector {' or '.join(named)}" if any(named) else f"namespace {pod.key.namespace}"

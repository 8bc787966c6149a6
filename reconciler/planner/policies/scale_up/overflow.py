"""Where demand goes if a fleet is unavailable: other sizes, then on-demand, then other regions."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.health import SILENT
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.offers import suits_class
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.view import ClusterView


def any_spot_without_fallback(view: ClusterView) -> bool:
    """Return whether an unavailable spot fleet keeps its demand from other fleets."""
    return any(
        s.unavailable and s.settings.spot and not s.settings.spot_fallback
        for s in view.inventory.fleets
    )


def may_use(builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus) -> bool:
    """Return whether no unavailable spot fleet keeps the class from the fleet."""
    blocking = blocking_spot_fleets(builder, waiting, status)
    return status.settings.spot or next(blocking, None) is None


def blocking_spot_fleets(
    builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus
) -> Iterator[FleetStatus]:
    """Yield the unavailable spot fleets that keep the class from this on-demand fleet."""
    for other in builder.view.inventory.fleets:
        if (
            other.unavailable
            and other.settings.spot
            and not (other.settings.spot_fallback or other.settings.departing)
            and other.settings.sector in waiting.sectors
            and other.key.region == status.key.region
            and suits_class(builder, waiting, other)
        ):
            yield other


def silent_for_a_moment(
    view: ClusterView, fleets: Iterable[FleetStatus], sectors: Collection[str]
) -> list[FleetStatus]:
    """Return fleets of the sectors whose provider stopped answering a short time ago.

    Nodes of theirs may be launching: after one lost answer of Auto Scaling they must not be bought
    once more from an EC2 Fleet of the same region.
    """
    patience = timedelta(seconds=view.settings.instance_init_seconds)
    return [
        status
        for status in fleets
        if status.state == SILENT
        and status.silent_since is not None
        and view.at - status.silent_since < patience
        and status.settings.sector in sectors
        and not status.settings.departing
    ]


def awaits_answer(
    builder: PlanBuilder, waiting: WaitingClass, silent: Sequence[FleetStatus], tier: int
) -> bool:
    """Return whether one of the silent fleets is of this tier and would serve the class."""
    return any(each.tier == tier and suits_class(builder, waiting, each) for each in silent)


def awaits_silent(builder: PlanBuilder, waiting: WaitingClass, tier: int) -> bool:
    """Return whether such a fleet keeps the class from the others of this tier."""
    silent = silent_for_a_moment(builder.view, builder.view.inventory.fleets, waiting.sectors)
    return awaits_answer(builder, waiting, silent, tier)


def moves_on(
    builder: PlanBuilder, waiting: WaitingClass, fleets: Sequence[FleetStatus], tier: int
) -> bool:
    """Return whether an unavailable fleet of an earlier region would have served the class.

    True as well if none there could ever serve it, because its volume or its selector is of this
    region. A fleet at its maximum, or over a cost limit, is not unavailable: its demand does not
    overflow. Nor is one whose region has just stopped answering: one lost answer must not fill
    another region.
    """
    view = builder.view
    patience = timedelta(seconds=view.settings.instance_init_seconds)
    preferred = [
        status
        for status in fleets
        if status.tier < tier
        and not status.settings.departing
        and suits_class(builder, waiting, status)
    ]
    failing = [status for status in preferred if status.unavailable]
    silences = [view.at - s.silent_since for s in failing if s.silent_since is not None]
    return not preferred or (bool(failing) and all(silence >= patience for silence in silences))

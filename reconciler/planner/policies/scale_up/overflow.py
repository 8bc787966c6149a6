"""Where demand goes when a fleet is unavailable: sizes, then on-demand, then regions."""

from collections.abc import Sequence
from datetime import timedelta

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.view import ClusterView


def could_serve(builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus) -> bool:
    """Whether a node of the fleet would suit the class, were the fleet available."""
    node = builder.view.offers[status.key]
    if builder.sim.refusal(waiting.pod_class, builder.sim.kind_of(node.row)):
        return False
    offered = builder.sim.offer_of(node.row)
    return bool((waiting.pod_class.requests <= offered).all())


def any_spot_without_fallback(view: ClusterView) -> bool:
    """Whether an unavailable spot fleet keeps its demand to itself at all."""
    return any(
        s.unavailable and s.settings.spot and not s.settings.spot_fallback
        for s in view.inventory.fleets
    )


def may_use(builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus) -> bool:
    """Return whether no unavailable spot fleet keeps the class off the fleet."""
    return status.settings.spot or blocking_spot_fleet(builder, waiting, status) is None


def blocking_spot_fleet(
    builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus
) -> FleetStatus | None:
    """The unavailable spot fleet that keeps the class off this on-demand fleet."""
    for other in builder.view.inventory.fleets:
        if (
            other.unavailable
            and other.settings.spot
            and not (other.settings.spot_fallback or other.settings.departing)
            and other.settings.sector in waiting.sectors
            and other.key.region == status.key.region
            and could_serve(builder, waiting, other)
        ):
            return other
    return None


def moves_on(
    builder: PlanBuilder, waiting: WaitingClass, fleets: Sequence[FleetStatus], tier: int
) -> bool:
    """Whether a fleet of an earlier region would have served the class but is unavailable.

    Or none there could ever serve it, as its volume or its selector is of this region. A fleet at
    its maximum, or over a cost limit, is not unavailable: no overflow. Nor is one whose
    region has not answered for a moment: one lost answer must not fill another region.
    """
    view = builder.view
    patience = timedelta(seconds=view.settings.instance_init_seconds)
    preferred = [
        status
        for status in fleets
        if status.tier < tier
        and not status.settings.departing
        and could_serve(builder, waiting, status)
    ]
    failing = [status for status in preferred if status.unavailable]
    silences = [view.at - s.silent_since for s in failing if s.silent_since is not None]
    return not preferred or (bool(failing) and all(each >= patience for each in silences))

"""Reasons why no fleet of a sector can take more pods, whatever the pod."""

from collections.abc import Collection

from reconciler.model.unplaceable import Reason, ReasonKind
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.maximum import maximum_reached
from reconciler.planner.policies.scale_up.overflow import blocking_spot_fleets
from reconciler.planner.reservations import WaitingClass

Found = tuple[str, str, ReasonKind]
"""Code, detail and kind of a reason."""


def no_fleet(builder: PlanBuilder, sectors: Collection[str]) -> Reason:
    """Return the reason if no fleet could be asked."""
    settings = builder.view.settings
    named = sorted(fleet.name for fleet in settings.fleets() if fleet.sector in sectors)
    if named:
        detail = f"AWS was not asked about the region of {', '.join(named)}"
    elif any(sectors):
        listed = ", ".join(sorted(sectors))
        detail = f"sector {listed} has no fleets: name one under sectors.{min(sectors)}.fleets"
    else:
        detail = f"no Auto Scaling group carries the tags of cluster {settings.cluster}"
    home = settings.home_region
    return Reason(fleet="", region=home, code="fleet-unavailable", detail=detail, kind="no-fleet")


def at_maximum(builder: PlanBuilder, status: FleetStatus) -> Found:
    """Return the reason of a fleet that may hold no more than it will have."""
    kind, clause = maximum_reached(status, builder.size_of(status.key))
    return "max-capacity", f"the fleet {clause}", kind


def kept_off(builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus) -> Found | None:
    """Return the reason while an unavailable spot fleet keeps the class off an on-demand fleet."""
    blocker = next(blocking_spot_fleets(builder, waiting, status), None)
    if blocker is None:
        return None
    why_not = f"{blocker.key.name} is unavailable ({blocker.unavailable})"
    detail = f"{why_not} and its spot_fallback keeps its demand off on-demand"
    return "fleet-unavailable", detail, "spot-fallback"

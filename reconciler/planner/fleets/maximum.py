"""Which limit a fleet is at that may have no more nodes, in words."""

from reconciler.model.unplaceable import ReasonKind
from reconciler.planner.fleets.departing import has_other_capacity_type
from reconciler.planner.fleets.inventory import FleetStatus


def is_replaced(status: FleetStatus) -> bool:
    """Return whether a new fleet is to take its place, as the config changes its capacity type."""
    going, live = status.settings.departing, status.live
    return going and live is not None and has_other_capacity_type(live, status.settings)


def maximum_reached(status: FleetStatus, nodes: int) -> tuple[ReasonKind, str]:
    """Return which limit `FleetStatus.max` is, as a kind and as a clause about the fleet.

    A fleet that is to go may hold nothing, whatever the config's `max_capacity` says.

    Args:
        status: The fleet.
        nodes: How many it will have: perhaps more than it may, where the limit was lowered.
    """
    if status.settings.departing:
        what = "replaced by one of another capacity type" if is_replaced(status) else "removed"
        return "departing", f"is to be {what} (allow_destroy) and gets no more nodes"
    most = status.max
    place = "above" if most is not None and nodes > most else "at"
    by_config = status.settings.max_capacity == most
    by_group = status.live is not None and status.live.max_size == most
    if by_config and by_group:
        return "both-maxima", f"is {place} its max_capacity and its group's maximum size of {most}"
    if by_group:
        return "maximum-size", f"is {place} its group's maximum size of {most}"
    return "", f"is {place} its max_capacity of {most}"

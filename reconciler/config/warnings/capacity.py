"""Warnings about capacity: settings without effect, missing or unusable limits of cost."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from reconciler.config.faults import (
    ALL_RESERVED,
    BELOW_ONE_NODE,
    EXPIRY,
    FALLBACK_WITHOUT_SPOT,
    LIMIT_BELOW_MINIMA,
    NO_COST_LIMIT,
    listed,
)
from reconciler.config.planning.settings import planner_settings
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem
from reconciler.planner.settings import FleetSettings, PlannerSettings

SHORTEST_EXPIRY_SECONDS: Final = 3600.0


def fallback_without_spot(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each `spot_fallback: on-demand` of an on-demand fleet."""
    for fleet in subject.fleets:
        if not fleet.fleet.entry.spot and fleet.fleet.entry.spot_fallback == "on-demand":
            message = "spot_fallback does nothing with spot: false; take one of the two out"
            location = (*fleet.node.location, "spot_fallback")
            yield subject.warning(FALLBACK_WITHOUT_SPOT, location, message)


def useless_expiry(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each `expire_after` that is too short or can never replace a node."""
    for fleet in subject.fleets:
        entry = fleet.fleet.entry
        if entry.expire_after_seconds is None:
            continue
        location = (*fleet.node.location, "expire_after")
        if entry.expire_after_seconds < SHORTEST_EXPIRY_SECONDS:
            message = "below 1h every pod of the fleet is moved again and again; days are usual"
            yield subject.warning(EXPIRY, location, message)
        if entry.max_capacity is not None and entry.max_capacity <= entry.min_capacity:
            message = (
                "no node is ever replaced: min_capacity is max_capacity, and the node in its place"
                " comes first; raise max_capacity by one"
            )
            yield subject.warning(EXPIRY, location, message)


def all_reserved(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each reserve that leaves pods no room on a fleet's new nodes."""
    settings = _settings(subject)
    for key, resource in (("reserved_cpus", "cpu"), ("reserved_memory", "memory")):
        full = [
            fleet.name
            for fleet in settings.fleets()
            if fleet.allocatable is None and _leaves_nothing(settings, fleet, resource)
        ]
        if full:
            message = f"leaves nothing of the new nodes of {listed(full)}: no pod fits them"
            yield subject.warning(ALL_RESERVED, (key,), message)


def _leaves_nothing(settings: PlannerSettings, fleet: FleetSettings, resource: str) -> bool:
    """Return whether the config's reserve is as large as one of the fleet's types, or larger."""
    reserved = settings.reserve.of(fleet.provider).amounts.get(resource, 0)
    return any(0 < option.resources.get(resource, 0) <= reserved for option in fleet.options)


def limit_below_minima(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each `max_hourly_usd` below what the minimum capacities cost."""
    config = subject.config
    settings = _settings(subject)
    cost = _cost(settings.fleets())
    if config.max_hourly_usd is not None and cost > config.max_hourly_usd:
        message = _message(config.max_hourly_usd, cost)
        yield subject.warning(LIMIT_BELOW_MINIMA, ("max_hourly_usd",), message)
    for sector in settings.sectors:
        cost = _cost(sector.fleets)
        if sector.usd_per_hour_max is not None and cost > sector.usd_per_hour_max:
            location = ("sectors", sector.name, "max_hourly_usd")
            message = _message(sector.usd_per_hour_max, cost)
            yield subject.warning(LIMIT_BELOW_MINIMA, location, message)


def below_one_node(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each limit of `raise_limits` below what one node of a fleet costs."""
    settings, limits = _settings(subject), subject.config.raise_limits
    for key in ("hourly_usd_per_cycle", "hourly_usd_per_hour"):
        limit: Decimal | None = getattr(limits, key)
        if limit is None:
            continue
        costly = [f.name for f in settings.fleets() if f.usd_per_hour and f.usd_per_hour > limit]
        if costly:
            message = f"a node of {listed(costly)} costs more than {limit}: none is bought for pods"
            yield subject.warning(BELOW_ONE_NODE, ("raise_limits", key), message)


def no_cost_limit(subject: Subject) -> Iterator[Problem]:
    """Yield a warning if neither `max_hourly_usd` nor `raise_limits` limits the cost."""
    config = subject.config
    sectors = config.sectors.values()
    limited = all(sector.max_hourly_usd is not None for sector in sectors) and bool(sectors)
    if config.max_hourly_usd is None and not limited and not config.raise_limits.given():
        message = (
            "no max_hourly_usd and no raise_limits: one plan may multiply the targets by ten, or"
            " add 1,000 nodes if that is more"
        )
        yield subject.warning(NO_COST_LIMIT, ("max_hourly_usd",), message)


def _settings(subject: Subject) -> PlannerSettings:
    config = subject.config
    named = config if config.cluster else config.model_copy(update={"cluster": "unnamed"})
    return planner_settings(named, subject.catalogue)


def _cost(fleets: Iterable[FleetSettings]) -> Decimal:
    """Return what the minima cost in an hour, as far as prices are known."""
    return sum((f.min_capacity * (f.usd_per_hour or Decimal()) for f in fleets), Decimal())


def _message(limit: Decimal, cost: Decimal) -> str:
    return (
        f"the minimum capacities alone cost about {cost:.2f} USD an hour, more than {limit}:"
        " nothing else could be bought"
    )

"""Which providers of nodes a config asks for."""

from collections.abc import Mapping
from typing import TypeVar

from reconciler.model.fleet import Provider
from reconciler.planner.settings import PlannerSettings

T = TypeVar("T")


def providers_of(settings: PlannerSettings) -> frozenset[Provider]:
    """The providers whose fleets a config has; a config without sectors has groups only.

    A provider that is not asked for is not asked: its rights may be missing.
    """
    if settings.discovery is not None and not settings.sectors:
        return frozenset({"asg"})
    found: frozenset[Provider] = frozenset(fleet.provider for fleet in settings.fleets())
    return found or frozenset({"ec2-fleet"})


def group_names(settings: PlannerSettings) -> frozenset[str]:
    """Auto Scaling groups that the config names."""
    return frozenset(f.auto_scaling_group for f in settings.fleets() if f.auto_scaling_group)


def asked_for(clouds: Mapping[Provider, T], settings: PlannerSettings) -> tuple[T, ...]:
    """Those of the clouds that a config has fleets of."""
    wanted = providers_of(settings)
    return tuple(cloud for provider, cloud in clouds.items() if provider in wanted)

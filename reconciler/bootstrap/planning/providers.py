"""Which providers of nodes a config needs."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from reconciler.model.errors import Forbidden, name_and_text
from reconciler.model.fleet import Provider
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState, Ignored
from reconciler.planner.settings import PlannerSettings
from reconciler.ports.cloud import Cloud

T = TypeVar("T")


def providers_of(settings: PlannerSettings) -> frozenset[Provider]:
    """Return the providers whose fleets a config has; a config without sectors has groups only.

    No other provider is called: the rights for it may be missing.
    """
    if settings.discovery is not None and not settings.sectors:
        return frozenset({"asg"})
    found: frozenset[Provider] = frozenset(fleet.provider for fleet in settings.fleets())
    return found or frozenset({"ec2-fleet"})


def observed_clouds(
    clouds: Mapping[Provider, Cloud], settings: PlannerSettings
) -> tuple[Cloud, ...]:
    """Return the clouds to observe, also one whose last fleet the config is removing.

    Without rights to that one its fleets are not seen, which the status says where it has nodes
    (`Ignored` of kind `Provider`); everything else works.
    """
    wanted = providers_of(settings)
    return tuple(
        cloud if provider in wanted else _IfAllowed(provider, cloud)
        for provider, cloud in observed(clouds, settings).items()
    )


def observed(clouds: Mapping[Provider, T], settings: PlannerSettings) -> dict[Provider, T]:
    """Return the clouds to observe: those of the config's fleets, and all while one may go."""
    names = {fleet.name for fleet in settings.fleets()}
    going = bool(settings.allow_destroy - names)
    wanted = providers_of(settings)
    return {provider: cloud for provider, cloud in clouds.items() if provider in wanted or going}


class _IfAllowed:
    """A cloud that shows nothing while its rights are missing, but why."""

    def __init__(self, provider: Provider, cloud: Cloud) -> None:
        self._provider = provider
        self._cloud = cloud
        self.fleet = cloud.fleet
        self.fleet_state = cloud.fleet_state
        self.set_target_capacity = cloud.set_target_capacity
        self.instances = cloud.instances
        self.terminate = cloud.terminate

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """See ports.cloud."""
        try:
            return self._cloud.observe(regions)
        except Forbidden as error:
            why = name_and_text(error)
            unreadable = Ignored(
                code="unreadable", kind="Provider", name=self._provider, detail=why
            )
            return CloudState(
                regions=frozenset(regions), instances_known=False, ignored=(unreadable,)
            )


def group_names(settings: PlannerSettings) -> frozenset[str]:
    """Return the Auto Scaling groups that the config names."""
    return frozenset(f.auto_scaling_group for f in settings.fleets() if f.auto_scaling_group)

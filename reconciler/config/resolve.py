"""Resolves the settings of each fleet from its own keys, its sector and the top level."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from reconciler.config.fleet_name import fleet_name
from reconciler.config.fleets import FleetEntry, OwnSize, SectorEntry
from reconciler.config.schema import SectorConfig
from reconciler.config.sections import GracePeriod, ScaleIn
from reconciler.config.sizes import BUILT_IN_SIZES, BuiltInSize
from reconciler.config.terraform import Taint, TerraformVariables, is_ami_alias

MERGED_VARIABLES: Final = frozenset({"tags", "node_labels"})
"""Module variables whose entries add up over the levels; of others the nearest holds."""
EBS_SIZE_DEFAULT_GIB: Final = 50
"""The eks_fleet module's default."""
OF_ONE_REGION: Final = frozenset(
    {
        "ami",
        "ebs_kms_key_id",
        "network_interfaces",
        "overrides",
        "private_subnet_ids",
        "security_group_id",
        "security_group_ids",
    }
)
"""Module variables that name things of one Region, which no other Region has."""
OF_FLEETS: Final = frozenset({"fleet_tags", "launch_template_by_name", "max_prices", "overrides"})
"""Module variables of EC2 Fleets alone (eks_fleet)."""
OF_GROUPS: Final = frozenset(
    {
        "group_tags",
        "mixed_instances_policy",
        "on_demand_base_capacity",
        "on_demand_percentage_above_base_capacity",
    }
)
"""Module variables of Auto Scaling groups alone (eks_group)."""
OF_SPOT: Final = (
    "max_price",
    "max_prices",
    "on_demand_base_capacity",
    "on_demand_percentage_above_base_capacity",
)
"""Module variables of fleets and groups with spot instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedFleet:
    """A fleet with everything that it inherits."""

    config: SectorConfig
    sector_name: str
    sector: SectorEntry
    entry: FleetEntry
    region: str | None = None
    """The Region that the module variables are resolved for; None: the first of `regions`."""

    def in_region(self, region: str | None) -> "ResolvedFleet":
        """Return the same fleet with the module variables of a Region."""
        return replace(self, region=region)

    @property
    def name(self) -> str:
        """Return `<sector>-<size>`, then its zone and its lifecycle where the entry states them."""
        entry = self.entry
        return fleet_name(self.sector_name, entry.size, entry.zone, entry.lifecycle)

    @property
    def is_rendered(self) -> bool:
        """Return whether Terraform makes it: not with `managed: false`."""
        return self.entry.managed

    @property
    def is_group(self) -> bool:
        """Return whether it is an Auto Scaling group."""
        return self.entry.provider == "asg"

    @property
    def initial_node_count(self) -> int:
        """Return the number of nodes it is created with."""
        stated = self.entry.initial_node_count
        return self.entry.min_capacity if stated is None else stated

    @property
    def own_size(self) -> OwnSize | None:
        """Return its own size; None when it is a built-in one."""
        return self.config.sizes.get(self.entry.size)

    @property
    def built_in_size(self) -> BuiltInSize | None:
        """Return its built-in size; None when it is an own one."""
        return BUILT_IN_SIZES.get((self.sector.kind, self.entry.size))

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Return the types that EC2 may choose from: the fleet's own, else its size's."""
        size = self.own_size or self.built_in_size
        return self.entry.instance_types or (size.instance_types if size else ())

    @property
    def regions(self) -> tuple[str, ...]:
        """Return its Regions in order of preference; empty when nothing states any.

        A fleet of one zone can only be in that zone's Region.
        """
        stated = self.entry.regions or self.sector.regions or self.config.regions
        zone = self.entry.zone
        of_zone = tuple(region for region in stated if zone and zone.startswith(region))
        return of_zone or stated

    @property
    def rendered_regions(self) -> tuple[str | None, ...]:
        """Return the Regions whose root modules make it; a single None when none is named.

        These are the Regions that the fleet, its zone or its sector names. The Regions of the top
        level are an order of preference for planning too: of them the home Region, and those for
        which `terraform.by_region` has variables.
        """
        regions = self.regions
        if not regions:
            return (None,)
        if self.entry.regions or self.sector.regions or regions != self.config.regions:
            return regions
        by_region = self.config.terraform.by_region
        return tuple(r for n, r in enumerate(regions) if n == 0 or r in by_region)

    @property
    def planned_regions(self) -> tuple[str, ...]:
        """Return the Regions in which the planner uses it: all of its own, rendered or not.

        Once `allow_destroy` lists it, only those that it is rendered for: from the others Terraform
        removes it, so it has to be drained there.
        """
        if self.is_rendered and self.name in self.config.allow_destroy:
            return tuple(region for region in self.rendered_regions if region is not None)
        return self.regions

    @property
    def minimum_region(self) -> str | None:
        """Return where `min_capacity` is kept: in the home Region, else in the first of its own.

        None when it names no Region: then there is only the home Region.
        """
        home = home_region_of(self.config)
        return home if home in self.regions else next(iter(self.regions), None)

    @property
    def over_subscription(self) -> float:
        """Return the share added to requests to size new capacity."""
        stated = self.sector.over_subscription
        return self.config.default_over_subscription if stated is None else stated

    @property
    def scale_in(self) -> ScaleIn:
        """Return when its nodes are no longer needed."""
        top = self.config.scale_in
        return top.overridden_by(self.sector.scale_in).overridden_by(self.entry.scale_in)

    @property
    def grace_periods(self) -> tuple[GracePeriod, ...]:
        """Return its grace periods, of which the first match counts; the nearest level with any."""
        whole_day = self.entry.inactive_grace_period_seconds
        last = () if whole_day is None else (GracePeriod(value=whole_day),)
        if self.entry.inactive_grace_periods is not None:
            return self.entry.inactive_grace_periods + last
        if last:
            return last
        inherited = self.sector.inactive_grace_periods
        return self.config.inactive_grace_periods if inherited is None else inherited

    @property
    def terraform(self) -> Mapping[str, Any]:
        """Return the module variables of the three levels for its provider, as typed values.

        Of variables for the other provider only those of the fleet itself are kept, which a rule
        refuses: at other levels they are meant for other fleets.
        """
        merged: dict[str, Any] = {}
        for level, everywhere in self._terraform_levels():
            for key, value in level.given().items():
                if key not in TerraformVariables.model_fields or value is None:
                    continue
                if level is not self.entry.terraform and self._is_for_others(key, value):
                    continue
                if everywhere or not _is_of_one_region(key, value):
                    add = key in MERGED_VARIABLES
                    merged[key] = {**merged.get(key, {}), **value} if add else value
        return merged

    def _is_for_others(self, key: str, value: Any) -> bool:
        """Return whether a variable of an outer level is for fleets of the other provider."""
        if self.is_group:
            return key in OF_FLEETS or (key, value) == ("spot_allocation_strategy", "diversified")
        return key in OF_GROUPS

    def _terraform_levels(self) -> Iterator[tuple[TerraformVariables, bool]]:
        """Yield the levels from far to near, with whether images and subnets are the Region's.

        Those of the top level are of the home Region. Those of a sector or fleet are too, unless
        the fleet is in one Region alone.
        """
        top, regions = self.config.terraform, self.regions
        region = self.region or (regions[0] if regions else None)
        at_home = region is None or region == home_region_of(self.config)
        yield top, at_home
        if region in top.by_region:
            yield top.by_region[region], True
        for level in (self.sector.terraform, self.entry.terraform):
            if level is not None:
                yield level, at_home or len(regions) == 1

    @property
    def labels(self) -> Mapping[str, str]:
        """Return every label that its nodes are registered with, ours included."""
        return {
            **self.terraform.get("node_labels", {}),
            **self.sector.labels,
            **self.entry.labels,
            "sector": self.sector_name,
            "fleet": self.name,
            "size": self.entry.size,
            "pool_size": self.entry.size,
            "kind": self.sector.kind,
            "lifecycle": "Ec2Spot" if self.entry.spot else "OnDemand",
        }

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Return every taint of its nodes; of one key and effect the nearest level's counts."""
        stated = (
            *self.terraform.get("node_taints", ()),
            *self.sector.taints,
            *self.entry.taints,
        )
        by_identity = {(taint.key, taint.effect): taint for taint in stated}
        if self.terraform.get("on_demand_prefer_no_schedule_taint") and not self.entry.spot:
            ours = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")
            by_identity[(ours.key, ours.effect)] = ours
        return tuple(by_identity.values())

    @property
    def zones(self) -> tuple[str, ...]:
        """Return the zones it may launch in, as far as the config says."""
        if self.entry.zone is not None:
            return (self.entry.zone,)
        found: set[str] = set()
        for region in self.rendered_regions:
            found.update(self.in_region(region).terraform.get("private_subnet_ids", ()))
        return tuple(sorted(found))

    @property
    def ebs_size_gib(self) -> int:
        """Return the size of a node's volume; of several, of the first that states one."""
        sizes = [volume.size for volume in self.terraform.get("volumes", ()) if volume.size]
        if sizes:
            return int(sizes[0])
        return int(self.terraform.get("ebs_size", EBS_SIZE_DEFAULT_GIB))


def resolve_fleets(config: SectorConfig) -> tuple[ResolvedFleet, ...]:
    """Return every fleet of the config, in its order."""
    return tuple(
        ResolvedFleet(config=config, sector_name=name, sector=sector, entry=entry)
        for name, sector in config.sectors.items()
        for entry in sector.fleets
    )


def home_region_of(config: SectorConfig) -> str | None:
    """Return the home Region: the first of the config's, else the first that a fleet names.

    None when no Region is named: then it is that of the AWS settings.
    """
    if config.regions:
        return config.regions[0]
    named = (fleet.regions for fleet in resolve_fleets(config))
    return next((regions[0] for regions in named if regions), None)


def further_regions_of(config: SectorConfig) -> tuple[str, ...]:
    """Return the Regions other than the home Region that fleets are rendered for, sorted."""
    home = home_region_of(config)
    found = {
        region
        for fleet in resolve_fleets(config)
        if fleet.is_rendered
        for region in fleet.rendered_regions
    }
    return tuple(sorted(region for region in found if region not in (None, home)))


def _is_of_one_region(key: str, value: Any) -> bool:
    """Return whether a module variable is specific to a Region; an image by alias is not."""
    named_everywhere = key == "ami" and (value.startswith("resolve:") or is_ami_alias(value))
    return key in OF_ONE_REGION and not named_everywhere

"""Limits and prices of each fleet in the sector config, for plan summaries."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from reconciler.config.catalogue import catalogue_beside, load_catalogue
from reconciler.config.loader import Purpose, parse_config
from reconciler.config.planning.settings import planner_settings
from reconciler.config.resolve import home_region_of, resolve_fleets
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.model.fleet import InstanceType, PriceSource


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLimits:
    """Holds the limits and the price of one fleet of the config."""

    min_capacity: int
    max_capacity: int | None
    """None: unlimited."""
    usd_per_hour: Decimal | None
    """Price of one node of the cheapest option; None: no price is known."""
    regions: tuple[str, ...] = ()
    """Regions in which the config has it; empty: it names none, so that all are meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFacts:
    """Holds what a plan's guard and summary need from the config."""

    cluster: str = ""
    region: str = ""
    """Region of the root module; empty: that of the AWS environment."""
    fleets: Mapping[str, FleetLimits] = field(default_factory=dict)
    made_here: tuple[str, ...] = ()
    """Fleets that the root module makes."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Names of fleets by their Auto Scaling group."""
    allow_destroy: frozenset[str] = frozenset()
    prices: PriceSource | None = None
    """Where the prices come from."""
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    """Instance types by name, with prices for fleets that the config does not name (any more)."""
    rendered: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file that the config renders to, by path in the root module."""


def config_facts(
    content: bytes,
    *,
    name: str = "sectors.yaml",
    cluster_name: str | None = None,
    region: str | None = None,
) -> ConfigFacts:
    """Read the facts for one root module from a config's bytes.

    Args:
        content: The YAML.
        name: Its name in messages.
        cluster_name: For a config that names no cluster.
        region: Region of the root module, if it is a further one; None: the home Region.

    Raises:
        ConfigError: The config has faults.
        UsageError: No cluster is named.
    """
    config = parse_config(content, name=name, cluster_name=cluster_name, purpose=Purpose.RENDER)
    catalogue = load_catalogue(catalogue_beside(config.catalogue, Path(name).parent))
    settings = planner_settings(config, catalogue)
    resolved = {fleet.name: fleet for fleet in resolve_fleets(config)}
    here = region or home_region_of(config)
    root = root_module_of(config, cluster_name=cluster_name, region=region)
    return ConfigFacts(
        cluster=settings.cluster,
        region=region or (config.regions[0] if config.regions else ""),
        fleets={
            fleet.name: FleetLimits(
                # One Region keeps it.
                min_capacity=fleet.min_capacity
                if resolved[fleet.name].minimum_region == here
                else 0,
                max_capacity=fleet.max_capacity,
                usd_per_hour=fleet.usd_per_hour,
                regions=resolved[fleet.name].planned_regions,
            )
            for fleet in settings.fleets()
        },
        made_here=tuple(sorted(root.fleets)),
        groups={f.auto_scaling_group: f.name for f in settings.fleets() if f.auto_scaling_group},
        allow_destroy=settings.allow_destroy,
        prices=settings.prices,
        types=catalogue,
        rendered={file.path: hashlib.sha256(file.content).hexdigest() for file in render(root)},
    )

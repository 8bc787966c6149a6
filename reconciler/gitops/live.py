"""What differs between the config and the fleets that EC2 has: pure, and seen by every cycle.

Images, volumes and state are seen by `ci drift` alone, which asks Terraform. Capacity is no drift.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.config.schema import SectorConfig
from reconciler.config.sizes import BUILT_IN_SIZES
from reconciler.gitops.root_module import RootModule, root_module_of
from reconciler.model.fleet import Fleet
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState

LiveDriftKind = Literal["fleet-missing", "fleet-extra", "tags-differ", "types-differ"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LiveDrift:
    """One fleet that is not what the config says."""

    fleet: str
    region: Region
    kind: LiveDriftKind
    """`fleet-missing`: an apply is due, or somebody deleted it. `fleet-extra`: the config no
    longer names it."""
    detail: str
    """Names of tags or types; never a tag's value."""


def live_drift(config: SectorConfig, home: Region, cloud: CloudState) -> tuple[LiveDrift, ...]:
    """Compare; sorted.

    Args:
        config: The sector config in force; it names the cluster.
        home: The Region whose fleets are rendered.
        cloud: What EC2 answered; of regions that did not answer nothing is said.
    """
    if not config.sectors or not config.cluster:
        return ()
    root = root_module_of(config)
    live = [fleet for fleet in cloud.fleets if fleet.provider == "ec2-fleet"]
    named = {*root.fleets, *root.left_out}
    found = [
        _drift(fleet, "fleet-extra", "not in the config; allow_destroy lets it be drained")
        for fleet in live
        if fleet.name not in named
    ]
    at_home = {fleet.name: fleet for fleet in live if fleet.region == home}
    if home in cloud.regions:
        for name, variables in root.fleets.items():
            fleet = at_home.get(name)
            if fleet is None:
                detail = "in the config, not in EC2"
                found.append(
                    LiveDrift(fleet=name, region=home, kind="fleet-missing", detail=detail)
                )
            else:
                found += _differences(root, fleet, variables)
    return tuple(sorted(found))


def fleet_tags(cluster: str, name: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """The tags that the eks_fleet module gives a fleet (`local.tags` in its main.tf)."""
    return {
        **variables.get("tags", {}),
        "Name": f"{cluster}-{name}",
        "Spot": "true" if variables["spot"] else "false",
        "cluster": cluster,
        "fleet": name,
        "kind": variables["node_pool_kind"],
        f"kubernetes.io/cluster/{cluster}": "owned",
        "sector": variables["sector_label"],
        "size": variables["node_pool_size"],
    }


def _differences(root: RootModule, fleet: Fleet, variables: Mapping[str, Any]) -> list[LiveDrift]:
    wanted = fleet_tags(root.cluster_name, fleet.name, variables)
    there = {key: value for key, value in fleet.tags.items() if not key.startswith("aws:")}
    keys = sorted(key for key in {*wanted, *there} if wanted.get(key) != there.get(key))
    found = [_drift(fleet, "tags-differ", ", ".join(keys))] if keys else []
    types = set(_instance_types(variables))
    changed = sorted(types ^ set(fleet.instance_types))
    if types and fleet.instance_types and changed:
        found.append(_drift(fleet, "types-differ", ", ".join(changed)))
    return found


def _instance_types(variables: Mapping[str, Any]) -> tuple[str, ...]:
    stated = variables.get("instance_types")
    if stated:
        return tuple(stated)
    size = BUILT_IN_SIZES.get((variables["node_pool_kind"], variables["node_pool_size"]))
    return size.instance_types if size is not None else ()


def _drift(fleet: Fleet, kind: LiveDriftKind, detail: str) -> LiveDrift:
    return LiveDrift(fleet=fleet.name, region=fleet.region, kind=kind, detail=detail)

"""Compares the config with EC2's fleets, in every cycle; pure.

Volumes, network and state are checked only by `ci drift`, which asks Terraform. Capacity is not
drift.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from unicodedata import normalize

from reconciler.config.module.groups import node_template_tags
from reconciler.config.resolve import further_regions_of, resolve_fleets
from reconciler.config.schema import SectorConfig
from reconciler.config.sizes import BUILT_IN_SIZES
from reconciler.config.terraform import Taint
from reconciler.gitops.drift.named_fleets import named_fleet
from reconciler.gitops.rendering.root_module import RootModule, root_modules_of
from reconciler.model.fleet import Fleet
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState
from reconciler.planner.fleets.live_fleet import LIVE_STATES

LiveDriftKind = Literal[
    "fleet-missing", "fleet-extra", "tags-differ", "types-differ", "image-differs"
]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LiveDrift:
    """Describes one fleet that differs from the config."""

    fleet: str
    region: Region
    kind: LiveDriftKind
    """`fleet-missing`: an apply is due, or somebody deleted it. `fleet-extra`: the config no longer
    names it in this Region, or several have its name. `image-differs`: seen on nodes of the current
    launch template version, so not before there is one."""
    detail: str
    """Names of tags, types or images; never a tag's value."""


def live_drift(config: SectorConfig, home: Region, cloud: CloudState) -> tuple[LiveDrift, ...]:
    """Compare the config with EC2 and return the differences, sorted.

    Args:
        config: The sector config in force; it names the cluster.
        home: The home Region, also where the config names none.
        cloud: What EC2 answered; regions that did not answer are not compared.
    """
    if not config.sectors or not config.cluster:
        return ()
    resolved = resolve_fleets(config)
    named = {(f.name, region) for f in resolved for region in f.planned_regions or (home,)}
    groups = {f.entry.auto_scaling_group: f.name for f in resolved if f.entry.auto_scaling_group}
    live = [
        known
        for fleet in cloud.fleets
        if fleet.state in LIVE_STATES
        and (known := named_fleet(fleet, groups, config.cluster)) is not None
    ]
    live_drifts = [
        _drift(fleet, "fleet-extra", "not in the config; allow_destroy lets it be drained")
        for fleet in live
        if (fleet.name, fleet.region) not in named
    ]
    images = _images_of_new_nodes(live, cloud)
    for further, root in root_modules_of(config).items():
        region = home if further is None else Region(further)
        if region in cloud.regions:
            here = [fleet for fleet in live if fleet.region == region]
            live_drifts += _drift_of_root(root, region, here, images, config.allow_destroy)
    return tuple(sorted(live_drifts))


def _drift_of_root(
    root: RootModule,
    region: Region,
    live: Iterable[Fleet],
    images: Mapping[FleetId, set[str]],
    allow_destroy: Collection[str],
) -> Iterator[LiveDrift]:
    """Yield the differences between one root module and the fleets of its Region."""
    by_name: dict[str, list[Fleet]] = defaultdict(list)
    for fleet in live:
        by_name[fleet.name].append(fleet)
    for name, variables in root.fleets.items():
        provider = "asg" if "auto_scaling_group" in variables else "ec2-fleet"
        theirs = [fleet for fleet in by_name[name] if fleet.provider == provider]
        if not theirs:
            detail = "in the config, not in EC2"
            yield LiveDrift(fleet=name, region=region, kind="fleet-missing", detail=detail)
        if len(theirs) > 1 and name not in allow_destroy:
            yield _several(theirs)
        for fleet in theirs[:1]:
            yield from _differences(root, fleet, variables, images.get(fleet.id, set()))


def is_live(config: SectorConfig, home: Region, cloud: CloudState) -> bool | None:
    """Return whether EC2 has the fleets of a config; None: one of its Regions did not answer."""
    wanted = {home, *map(Region, further_regions_of(config))}
    return not live_drift(config, home, cloud) if wanted <= cloud.regions else None


def _several(fleets: list[Fleet]) -> LiveDrift:
    """Return drift: outside of an approved replacement, no loop sizes a second fleet."""
    ids = ", ".join(sorted(fleet.id for fleet in fleets))
    return _drift(fleets[0], "fleet-extra", f"{len(fleets)} fleets have this name: {ids}")


def _images_of_new_nodes(live: list[Fleet], cloud: CloudState) -> Mapping[FleetId, set[str]]:
    """Return the images of nodes that each fleet launched from its current template version.

    EC2 lists the image with the instance, so this needs no further call. Older nodes have older
    images, which the rolling update replaces.
    """
    versions = {
        fleet.id: fleet.launch_template_version
        for fleet in live
        if fleet.launch_template_version.isdecimal()
    }
    images: dict[FleetId, set[str]] = defaultdict(set)
    for instance in cloud.instances:
        if instance.fleet_id not in versions or not instance.image_id or instance.gone:
            continue
        if instance.launch_template_version == versions[instance.fleet_id]:
            images[instance.fleet_id].add(instance.image_id)
    return images


def fleet_tags(cluster: str, name: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that the eks_fleet module gives a fleet (its `local.fleet_tags`)."""
    if "fleet_tags" in variables:
        return dict(variables["fleet_tags"])
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


def group_tags(cluster: str, name: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that the eks_group module gives a group (its `local.group_tags`)."""
    if "group_tags" in variables:
        return {tag["key"]: tag.get("value", "") for tag in variables["group_tags"]}
    spot, size = variables["spot"], variables["node_pool_size"]
    labels = {
        **variables.get("node_labels", {}),
        "sector": variables["sector_label"],
        "fleet": name,
        "size": size,
        "pool_size": size,
        "kind": variables["node_pool_kind"],
        "lifecycle": "Ec2Spot" if spot else "OnDemand",
    }
    taints = [Taint(**node_taint) for node_taint in variables.get("node_taints", ())]
    if variables.get("on_demand_prefer_no_schedule_taint") and not spot:
        taints.append(Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule"))
    template = node_template_tags(labels, taints, variables.get("node_resources", {}))
    return {**template, **fleet_tags(cluster, name, variables)}


def _differences(
    root: RootModule, fleet: Fleet, variables: Mapping[str, Any], images: set[str]
) -> list[LiveDrift]:
    tags_of = group_tags if fleet.provider == "asg" else fleet_tags
    wanted = _composed(tags_of(root.cluster_name, fleet.name, variables))
    there = _composed({k: v for k, v in fleet.tags.items() if not k.startswith("aws:")})
    keys = sorted(key for key in {*wanted, *there} if wanted.get(key) != there.get(key))
    live_drifts = [_drift(fleet, "tags-differ", ", ".join(keys))] if keys else []
    types = set(_instance_types(variables))
    changed = sorted(types ^ set(fleet.instance_types))
    if types and fleet.instance_types and changed:
        live_drifts.append(_drift(fleet, "types-differ", ", ".join(changed)))
    image = variables.get("ami", "")
    others = sorted(images - {image})
    if image.startswith("ami-") and others:
        live_drifts.append(
            _drift(fleet, "image-differs", f"new nodes get {', '.join(others)}, not {image}")
        )
    return live_drifts


def _composed(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags with composed characters (NFC), as Terraform passes all strings on."""
    return {normalize("NFC", key): normalize("NFC", value) for key, value in tags.items()}


def _instance_types(variables: Mapping[str, Any]) -> tuple[str, ...]:
    stated = variables.get("instance_types")
    if stated:
        return tuple(stated)
    size = BUILT_IN_SIZES.get((variables["node_pool_kind"], variables["node_pool_size"]))
    return size.instance_types if size is not None else ()


def _drift(fleet: Fleet, kind: LiveDriftKind, detail: str) -> LiveDrift:
    return LiveDrift(fleet=fleet.name, region=fleet.region, kind=kind, detail=detail)

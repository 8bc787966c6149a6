"""Auto Scaling groups that are found by their tags, if the config names no sectors.

Every group is a fleet of its own in one sector without a name, to which every pod belongs. One name
in two regions is two groups, and two fleets of that name. What a node of an empty group will be
follows from its instance types and from Cluster Autoscaler's node-template tags; no plan relies on
anything else.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.fleet import CLUSTER_TAG, Fleet, InstanceOption, InstanceType, Lifecycle
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import Snapshot
from reconciler.planner.fleets.group_tags import (
    tagged_allocatable,
    tagged_resources,
    tagged_taints,
    template_tags,
)
from reconciler.planner.fleets.live_fleet import LIVE_STATES
from reconciler.planner.named_priorities import priority_of
from reconciler.planner.nodes.starting import lasting
from reconciler.planner.placement.kinds import ARCH, INSTANCE_TYPE, OPERATING_SYSTEM, ZONE
from reconciler.planner.settings import (
    Discovery,
    FleetSettings,
    PlannerSettings,
    SectorSettings,
)

CAPACITY_TYPE = "eks.amazonaws.com/capacityType"
_KUBELET_PODS_MAX = 110
_Place = tuple[Region, FleetId]


def with_discovered(snapshot: Snapshot, settings: PlannerSettings) -> PlannerSettings:
    """Return the settings with the nameless sector and its groups; unchanged with named sectors."""
    discovery = settings.discovery
    if discovery is None or settings.sectors:
        return settings
    shown = snapshot.cloud.fleets if snapshot.cloud else ()
    groups = [each for each in shown if each.provider == "asg" and each.state in LIVE_STATES]
    users: dict[str, set[str]] = {}
    for live in groups:
        users.setdefault(_stated_name(live, settings), set()).add(live.id)
    bought = _lifecycles(snapshot)
    known = {region: place for place, region in enumerate(settings.regions)}
    groups.sort(key=lambda f: (known.get(f.region, len(known)), f.region, f.id))
    fleets = [
        _group(
            name if len(users[name]) == 1 else live.id,
            live,
            discovery,
            bought,
            settings.startup_taints,
        )
        for live in groups
        for name in (_stated_name(live, settings),)
    ]
    fleets.sort(key=lambda fleet: fleet.name)
    sector = SectorSettings(name="", kind="", fleets=tuple(fleets), expander=discovery.expander)
    return replace(settings, sectors=(sector,))


def _stated_name(live: Fleet, settings: PlannerSettings) -> str:
    """Return the `fleet` tag of a group tagged as this cluster's, else the group's own name.

    Others use a tag of that name for their own purposes. One that several groups have names none of
    them.
    """
    return live.name if live.tags.get(CLUSTER_TAG) == settings.cluster else live.id


def _group(
    name: str,
    live: Fleet,
    found: Discovery,
    bought: Mapping[_Place, AbstractSet[Lifecycle]],
    startup_taints: frozenset[str],
) -> FleetSettings:
    """Return one group of one region: another of the same name elsewhere may launch other nodes."""
    labels = template_tags(live.tags, "label/")
    spot = _is_spot(live, labels, bought)
    options = _options(live, found.types, spot=spot)
    prices = [o.usd_per_hour for o in options if o.usd_per_hour is not None]
    return FleetSettings(
        name=name,
        sector="",
        kind=labels.get("kind", ""),
        size=labels.get("size", ""),
        provider="asg",
        auto_scaling_group=live.id,
        managed=False,
        spot=spot,
        # Cluster Autoscaler's groups stand in for each other, whatever they buy.
        spot_fallback=spot,
        zone=labels.get(ZONE),
        regions=(Region(live.region),),
        labels=Labels({**_kubelet_labels(options), **labels}),
        taints=lasting(tagged_taints(live.tags), startup_taints),
        options=options,
        priority=priority_of((name, live.id), found.priorities),
        usd_per_hour=min(prices, default=None),
        over_subscription=found.over_subscription,
        grace_periods=found.grace_periods,
        scale_in=found.scale_in,
    )


def _lifecycles(snapshot: Snapshot) -> Mapping[_Place, AbstractSet[Lifecycle]]:
    """Return the capacity types of each group's instances, by region and group."""
    found: dict[_Place, set[Lifecycle]] = {}
    for instance in snapshot.cloud.instances if snapshot.cloud else ():
        if instance.fleet_id is not None and instance.counts:
            found.setdefault((instance.region, instance.fleet_id), set()).add(instance.lifecycle)
    return found


def _is_spot(
    live: Fleet, labels: Mapping[str, str], bought: Mapping[_Place, AbstractSet[Lifecycle]]
) -> bool:
    """Return whether its next node will be a spot instance; False if nothing says so.

    What it launches by counts first, then its label, then its instances.
    """
    if live.lifecycle is not None:
        return live.lifecycle == "spot"
    if CAPACITY_TYPE in labels:
        return labels[CAPACITY_TYPE].upper() == "SPOT"
    return bought.get((live.region, live.id)) == {"spot"}


def _kubelet_labels(options: Iterable[InstanceOption]) -> dict[str, str]:
    """Return the labels that the kubelet will set, whatever EC2 chooses."""
    known = list(options)
    labels = {OPERATING_SYSTEM: "linux"}
    for key, values in (
        (ARCH, {o.arch for o in known}),
        (INSTANCE_TYPE, {o.instance_type for o in known}),
    ):
        if len(values) == 1:
            labels[key] = values.pop()
    return labels


def _options(
    group: Fleet, types: Mapping[str, InstanceType], *, spot: bool
) -> tuple[InstanceOption, ...]:
    """Return what EC2 may launch. An unknown type promises only what tags state."""
    stated = tagged_resources(group.tags)
    return tuple(
        _option(name, types.get(name), stated, spot=spot) for name in group.instance_types or ("",)
    )


def _option(
    name: str, known: InstanceType | None, stated: Mapping[str, int], *, spot: bool
) -> InstanceOption:
    if known is None:
        pods = {"pods": _KUBELET_PODS_MAX} if stated else {}
        resources: Resources = FrozenMap({**pods, **stated}) if stated else NO_RESOURCES
        return InstanceOption(
            instance_type=name,
            resources=resources,
            usd_per_hour=None,
            allocatable=tagged_allocatable(stated, stated),
        )
    amounts = {"cpu": known.cpu_milli, "memory": known.memory_bytes, "pods": known.pods_max}
    if known.gpus:
        amounts["nvidia.com/gpu"] = known.gpus
    return InstanceOption(
        instance_type=name,
        resources=FrozenMap({**amounts, **stated}),
        usd_per_hour=known.spot_usd_per_hour if spot else known.on_demand_usd_per_hour,
        arch=known.arch,
        allocatable=tagged_allocatable(stated, stated),
    )

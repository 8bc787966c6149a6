"""Auto Scaling groups that are found by their tags, where the config names no sectors.

Every group is a fleet of its own in one sector without a name, to which every pod belongs. What
a node of an empty group will be is told by its instance types and by Cluster Autoscaler's
node-template tags; what they do not tell, no plan relies on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import get_args

from reconciler.model.cluster import NO_RESOURCES, Resources, Taint, TaintEffect
from reconciler.model.fleet import CLUSTER_TAG, NODE_TEMPLATE, Fleet, InstanceOption, InstanceType
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import Region
from reconciler.model.quantity import resource_amount
from reconciler.model.snapshot import Snapshot
from reconciler.planner.fleets.live import LIVE_STATES
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
_EFFECTS: Mapping[str, TaintEffect] = {each: each for each in get_args(TaintEffect)}


def with_discovered(snapshot: Snapshot, settings: PlannerSettings) -> PlannerSettings:
    """Return the settings with the nameless sector and its groups.

    As they are where sectors are named.
    """
    found = settings.discovery
    if found is None or settings.sectors:
        return settings
    shown = snapshot.cloud.fleets if snapshot.cloud else ()
    groups = [each for each in shown if each.provider == "asg" and each.state in LIVE_STATES]
    users: dict[str, set[str]] = {}
    for live in groups:
        users.setdefault(_stated_name(live, settings), set()).add(live.id)
    by_name: dict[str, list[Fleet]] = {}
    for live in groups:
        name = _stated_name(live, settings)
        by_name.setdefault(name if len(users[name]) == 1 else live.id, []).append(live)
    fleets = tuple(_group(name, by_name[name], settings, found) for name in sorted(by_name))
    sector = SectorSettings(name="", kind="", fleets=fleets, expander=found.expander)
    return replace(settings, sectors=(sector,))


def _stated_name(live: Fleet, settings: PlannerSettings) -> str:
    """The `fleet` tag of a group that is tagged as this cluster's, else the group's own name.

    Others use a tag of that name for their own ends. One that several groups have names none of
    them.
    """
    return live.name if live.tags.get(CLUSTER_TAG) == settings.cluster else live.id


def _group(
    name: str, lives: Iterable[Fleet], settings: PlannerSettings, found: Discovery
) -> FleetSettings:
    """Return one group.

    Of the same name in several regions the preferred region's says what it is.
    """
    known = {region: place for place, region in enumerate(settings.regions)}
    ordered = sorted(lives, key=lambda f: (known.get(f.region, len(known)), f.region, f.id))
    first = ordered[0]
    labels = _told(first.tags, "label/")
    spot = labels.get(CAPACITY_TYPE, "").upper() == "SPOT"
    options = _options(first, found.types, spot=spot)
    prices = [o.usd_per_hour for o in options if o.usd_per_hour is not None]
    return FleetSettings(
        name=name,
        sector="",
        kind=labels.get("kind", ""),
        size=labels.get("size", ""),
        provider="asg",
        auto_scaling_group=first.id,
        spot=spot,
        zone=labels.get(ZONE),
        regions=tuple(dict.fromkeys(Region(live.region) for live in ordered)),
        labels=Labels({**_certain(options), **labels}),
        taints=lasting(_taints(first.tags), settings.startup_taints),
        options=options,
        priority=priority_of((name, first.id), found.priorities),
        usd_per_hour=min(prices, default=None),
        over_subscription=found.over_subscription,
        grace_periods=found.grace_periods,
        scale_in=found.scale_in,
    )


def _told(tags: Labels, part: str) -> dict[str, str]:
    """Return the node-template tags of one part, by what follows it."""
    prefix = f"{NODE_TEMPLATE}/{part}"
    return {k.removeprefix(prefix): v for k, v in tags.items() if k.startswith(prefix)}


def _certain(options: Iterable[InstanceOption]) -> dict[str, str]:
    """Labels that the kubelet will set whatever EC2 chooses."""
    known = list(options)
    labels = {OPERATING_SYSTEM: "linux"}
    for key, values in (
        (ARCH, {o.arch for o in known}),
        (INSTANCE_TYPE, {o.instance_type for o in known}),
    ):
        if len(values) == 1:
            labels[key] = values.pop()
    return labels


def _taints(tags: Labels) -> tuple[Taint, ...]:
    """From `<value>:<effect>`; what is no effect of Kubernetes keeps no pod off: it is left out."""
    parts = {key: text.rpartition(":") for key, text in _told(tags, "taint/").items()}
    return tuple(
        Taint(key=key, value=value, effect=_EFFECTS[effect])
        for key, (value, _, effect) in sorted(parts.items())
        if effect in _EFFECTS
    )


def _options(
    group: Fleet, types: Mapping[str, InstanceType], *, spot: bool
) -> tuple[InstanceOption, ...]:
    """Return what EC2 may launch.

    A type that nothing is known of promises nothing but what tags state.
    """
    stated = _stated(group.tags)
    return tuple(
        _option(name, types.get(name), stated, spot=spot) for name in group.instance_types or ("",)
    )


def _option(
    name: str, known: InstanceType | None, stated: Mapping[str, int], *, spot: bool
) -> InstanceOption:
    if known is None:
        pods = {"pods": _KUBELET_PODS_MAX} if stated else {}
        resources: Resources = FrozenMap({**pods, **stated}) if stated else NO_RESOURCES
        return InstanceOption(instance_type=name, resources=resources, usd_per_hour=None)
    amounts = {"cpu": known.cpu_milli, "memory": known.memory_bytes, "pods": known.pods_max}
    if known.gpus:
        amounts["nvidia.com/gpu"] = known.gpus
    return InstanceOption(
        instance_type=name,
        resources=FrozenMap({**amounts, **stated}),
        usd_per_hour=known.spot_usd_per_hour if spot else known.on_demand_usd_per_hour,
        arch=known.arch,
    )


def _stated(tags: Labels) -> dict[str, int]:
    """Resources that tags state; one that is no quantity states nothing."""
    amounts: dict[str, int] = {}
    for name, text in _told(tags, "resources/").items():
        try:
            amount = resource_amount(name, text)
        except ValueError:
            continue
        if amount >= 0:
            amounts[name] = amount
    return amounts

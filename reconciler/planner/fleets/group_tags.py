"""What Cluster Autoscaler's node-template tags say about a node of an Auto Scaling group."""

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from reconciler.model.cluster import Resources, Taint, TaintEffect
from reconciler.model.fleet import NODE_TEMPLATE
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.quantity import resource_amount
from reconciler.planner.nodes.starting import lasting
from reconciler.planner.settings import FleetSettings

EFFECTS: Mapping[str, TaintEffect] = {each: each for each in get_args(TaintEffect)}


def with_tags(fleet: FleetSettings, tags: Labels, startup_taints: frozenset[str]) -> FleetSettings:
    """Return a group of the config with what only its tags say; what the config says stays."""
    labels, resources = template_tags(tags, "label/"), tagged_resources(tags)
    known = {(taint.key, taint.effect) for taint in fleet.taints}
    stated = lasting(tagged_taints(tags), startup_taints)
    further = [each for each in stated if (each.key, each.effect) not in known]
    if not (labels or resources or further):
        return fleet
    return replace(
        fleet,
        labels=Labels({**labels, **fleet.labels}),
        taints=(*fleet.taints, *further),
        options=tuple(
            replace(
                option,
                resources=FrozenMap({**resources, **option.resources}),
                allocatable=tagged_allocatable(resources, option.resources),
            )
            for option in fleet.options
        ),
    )


def template_tags(tags: Labels, part: str) -> dict[str, str]:
    """Return the node-template tags of one part, by what follows it."""
    prefix = f"{NODE_TEMPLATE}/{part}"
    return {k.removeprefix(prefix): v for k, v in tags.items() if k.startswith(prefix)}


def tagged_taints(tags: Labels) -> tuple[Taint, ...]:
    """Return the taints of tags `<value>:<effect>`; those with an unknown effect are left out."""
    parts = {key: text.rpartition(":") for key, text in template_tags(tags, "taint/").items()}
    return tuple(
        Taint(key=key, value=value, effect=EFFECTS[effect])
        for key, (value, _, effect) in sorted(parts.items())
        if effect in EFFECTS
    )


def tagged_allocatable(stated: Mapping[str, int], machine: Mapping[str, int]) -> Resources:
    """Return the CPU and memory that tags state, at most what the machine has.

    Cluster Autoscaler takes such a tag for a node's allocatable.
    """
    return FrozenMap(
        (name, min(stated[name], machine.get(name, stated[name])))
        for name in ("cpu", "memory")
        if name in stated
    )


def tagged_resources(tags: Labels) -> dict[str, int]:
    """Return the resources that tags state, without those that are no quantity."""
    amounts: dict[str, int] = {}
    for name, text in template_tags(tags, "resources/").items():
        try:
            amount = resource_amount(name, text)
        except ValueError:
            continue
        if amount >= 0:
            amounts[name] = amount
    return amounts

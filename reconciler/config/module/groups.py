"""What the eks_group module refuses of an Auto Scaling group, and what only groups have."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from reconciler.config.faults import MODULE_LIMIT, MODULE_VALUE, quoted
from reconciler.config.module.fleet import WrittenFleet
from reconciler.config.resolve import OF_FLEETS, OF_GROUPS
from reconciler.config.rules.tags import KEY_MAX, OUR_TAGS, TAGS_MAX
from reconciler.config.terraform import Taint
from reconciler.model.errors import Problem
from reconciler.model.fleet import NODE_TEMPLATE

NAME_MAX: Final = 255
"""Auto Scaling CreateAutoScalingGroup; a colon is not allowed (API reference, read 2026-11)."""


def _provider(fleet: WrittenFleet) -> Iterator[Problem]:
    """Yield variables that the fleet itself states and that its provider does not use."""
    own = fleet.fleet.entry.terraform
    is_group = fleet.fleet.is_group
    others, whose = (OF_FLEETS, "EC2 Fleets") if is_group else (OF_GROUPS, "Auto Scaling groups")
    for key in sorted(others & own.given().keys() if own is not None else ()):
        yield fleet.problem(MODULE_VALUE, key, f"{key} is for {whose} only")
    if is_group and fleet.text("spot_allocation_strategy") == "diversified":
        message = "spot_allocation_strategy diversified is for EC2 Fleets only"
        yield fleet.problem(MODULE_VALUE, "spot_allocation_strategy", message)


def _name(fleet: WrittenFleet) -> Iterator[Problem]:
    name = fleet.fleet.entry.auto_scaling_group or ""
    if fleet.fleet.is_group and (len(name) > NAME_MAX or ":" in name or not name.isprintable()):
        message = f"{quoted(name)} is not a valid group name: to {NAME_MAX} characters, no colon"
        location = (*fleet.node.location, "auto_scaling_group")
        yield fleet.document.problem(MODULE_VALUE, location, message)


def _policy(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check a group without a mixed instances policy: only its template sets launches."""
    if not fleet.fleet.is_group or fleet.value("mixed_instances_policy") is not False:
        return
    types = fleet.fleet.instance_types
    if fleet.fleet.entry.spot or types != (fleet.text("launch_template_instance_type"),):
        message = (
            "mixed_instances_policy: false needs spot: false, and launch_template_instance_type as"
            " the fleet's only instance type"
        )
        yield fleet.problem(MODULE_VALUE, "mixed_instances_policy", message)


def _group_tags(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check that the labels and taints of a group's nodes fit into tags of the group."""
    if not fleet.fleet.is_group:
        return
    stated = fleet.value("group_tags")
    if stated is not None:
        keys = [tag.key for tag in stated]
        if len(set(keys)) < len(keys):
            yield fleet.problem(MODULE_VALUE, "group_tags", "group_tags must have each key once")
        count = len(keys)
    else:
        resolved, size = fleet.fleet, fleet.fleet.own_size
        resources = size.extended if size else {}
        tags = node_template_tags(resolved.labels, resolved.taints, resources)
        count = len(tags.keys() | set(fleet.value("tags") or ())) + OUR_TAGS
    if count > TAGS_MAX:
        message = (
            f"the group has {count} tags, those for its nodes' labels and taints among them; Auto"
            f" Scaling takes {TAGS_MAX}"
        )
        yield fleet.document.problem(MODULE_LIMIT, fleet.node.location, message)


def node_template_tags(
    labels: Mapping[str, str], taints: Sequence[Taint], resources: Mapping[str, object]
) -> dict[str, str]:
    """Return the tags that describe nodes of an empty group, as eks_group makes them."""
    first = {taint.key: f"{taint.value}:{taint.effect}" for taint in reversed(taints)}
    parts: Mapping[str, Mapping[str, object]] = {
        "label": labels,
        "taint": first,
        "resources": resources,
    }
    tags = {
        f"{NODE_TEMPLATE}/{kind}/{key}": str(value)
        for kind, values in parts.items()
        for key, value in values.items()
    }
    return {key: value for key, value in tags.items() if len(key) <= KEY_MAX}


GROUP_RULES: Final[tuple[Callable[[WrittenFleet], Iterator[Problem]], ...]] = (
    _provider,
    _name,
    _policy,
    _group_tags,
)

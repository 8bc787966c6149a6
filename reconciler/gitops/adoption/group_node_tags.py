"""What Cluster Autoscaler's tags of a group say of its nodes, for the config. Pure.

Plans take what a node of a group of Terraform will be from the config alone, so the config has to
have what the tags say; what it cannot have is noted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reconciler.config.rules.labels import OURS, is_refused_by_kubelet, malformed
from reconciler.model.cluster import Taint
from reconciler.model.fleet import NODE_TEMPLATE
from reconciler.model.frozen import Labels
from reconciler.planner.fleets.group_tags import (
    EFFECTS,
    tagged_resources,
    tagged_taints,
    template_tags,
)
from reconciler.planner.placement.kinds import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    OLDER_KEYS,
    OPERATING_SYSTEM,
    REGION,
    ZONE_KEYS,
)
from reconciler.records.untrusted_json import mapping
from reconciler.records.user_data import FirstBoot

_OF_PLACE_AND_TYPE: Final = frozenset(
    {ARCH, HOSTNAME, INSTANCE_TYPE, OPERATING_SYSTEM, REGION, *OLDER_KEYS.values(), *ZONE_KEYS}
)
"""Labels that plans take from instance types and subnets."""
_OPTIONS: Final = {
    "scaledownunneededtime": "unneeded_time and idle_threshold",
    "scaledownutilizationthreshold": "utilization_threshold",
    "scaledowngpuutilizationthreshold": "utilization_threshold",
}
"""Options of one group, and the keys of `scale_in` that replace them.

Source: kubernetes/autoscaler cluster-autoscaler/cloudprovider/aws/README.md, read 2026-11.
"""


def with_node_tags(boot: FirstBoot, tags: Labels) -> FirstBoot:
    """Return what user data and node-template tags say together; user data, which runs, wins.

    Args:
        boot: What user data says.
        tags: Tags of the group.
    """
    known = {(taint["key"], taint["effect"]) for taint in boot.taints}
    further = tuple(
        {"key": taint.key, "value": taint.value, "effect": str(taint.effect)}
        for taint in _taints(tags)
        if (taint.key, taint.effect) not in known
    )
    labels = {k: v for k, v in _labels(tags).items() if not is_refused_by_kubelet(k)}
    return replace(boot, labels={**labels, **boot.labels}, taints=(*boot.taints, *further))


def _labels(tags: Labels) -> dict[str, str]:
    """Return the labels of tags that nodes can have, and plans do not know anyway."""
    return {
        key: value
        for key, value in template_tags(tags, "label/").items()
        if key not in OURS
        and key not in _OF_PLACE_AND_TYPE
        and not any(malformed("label", key, value))
    }


def _taints(tags: Labels) -> list[Taint]:
    """Return the taints of tags that nodes can have."""
    return [
        tagged_taint
        for tagged_taint in tagged_taints(tags)
        if not any(malformed("taint", tagged_taint.key, tagged_taint.value))
    ]


def node_tag_notes(boot: FirstBoot, tags: Labels, size: Mapping[str, Any]) -> tuple[str, ...]:
    """Return notes on tags that contradict user data, or say what the config does not have.

    Args:
        boot: What user data says.
        tags: Tags of the group.
        size: Its own size in the config; empty: a built-in one.
    """
    return (
        *(() if boot.ami_type is None else _beside_user_data(boot, tags)),
        *_without_a_key(tags, mapping(size.get("extended"))),
        *_odd(tags),
    )


def _beside_user_data(boot: FirstBoot, tags: Labels) -> Iterator[str]:
    labels = _labels(tags)
    for key, value in sorted(labels.items()):
        given = boot.labels.get(key, value)
        if given != value:
            yield (
                f"its user data gives nodes the label {key}={given}, its tags say {key}={value}:"
                " the config has that of the user data; correct the tag"
            )
    taints = [taint for taint in with_node_tags(boot, tags).taints if taint not in boot.taints]
    missing = [f"{k}={v}" for k, v in sorted(labels.items()) if k not in boot.labels]
    missing += [f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in taints]
    if missing:
        yield (
            f"its tags state {', '.join(missing)}, which its user data does not give: plans count"
            " on them; if nothing else puts them on its nodes, a pod that selects such a label has"
            " nodes launched here and does not bind, so take them out of the tags and the config"
        )


def _without_a_key(tags: Labels, extended: Mapping[str, Any]) -> Iterator[str]:
    refused = [f"{k}={v}" for k, v in sorted(_labels(tags).items()) if is_refused_by_kubelet(k)]
    if refused:
        yield (
            f"its tags state {', '.join(refused)}, which the config may not have, since the kubelet"
            " refuses such a label of its own node: a pod that selects it gets no node here"
        )
    resources = [
        f"{name} {template_tags(tags, 'resources/')[name]}"
        for name, amount in sorted(tagged_resources(tags).items())
        if str(extended.get(name)) != str(amount)
    ]
    if resources:
        yield (
            f"its tags state what its nodes offer ({', '.join(resources)}), which the config does"
            " not have: plans count what its size states (`sizes`), CPU and memory less what is"
            " reserved, and pods that ask for more wait: devices belong under `extended`, CPU and"
            " memory, if nodes offer another amount, under `allocatable`, without what DaemonSets"
            " take"
        )


def _odd(tags: Labels) -> Iterator[str]:
    """Yield a note on each tag that states a label, taint or amount that no node can have."""
    faults: dict[str, str] = {}
    for key, value in template_tags(tags, "label/").items():
        if key not in OURS:
            faults[f"label/{key}"] = "; ".join(malformed("label", key, value))
    taints = {tagged_taint.key: tagged_taint for tagged_taint in tagged_taints(tags)}
    for key in template_tags(tags, "taint/"):
        taint = taints.get(key)
        faults[f"taint/{key}"] = (
            f"a taint is <value>:<effect>, with one of the effects {', '.join(EFFECTS)}"
            if taint is None
            else "; ".join(malformed("taint", taint.key, taint.value))
        )
    for name in template_tags(tags, "resources/").keys() - tagged_resources(tags).keys():
        faults[f"resources/{name}"] = "it is no quantity"
    for part, fault in sorted(faults.items()):
        if fault:
            tag = f"{NODE_TEMPLATE}/{part}"
            yield (
                f"its tag {tag}={tags[tag]} states what no node can have ({fault}), and the config"
                " does not have it: correct the tag, and the config"
            )


def option_notes(tags: Labels) -> Iterator[str]:
    """Yield a note on each of Cluster Autoscaler's options in tags of a group."""
    for name, value in sorted(template_tags(tags, "autoscaling-options/").items()):
        key = _OPTIONS.get(name.lower())
        instead = (
            f": state {key} in the scale_in of its fleet, or that of the config holds"
            if key
            else ", and nothing here replaces it for one group"
        )
        yield f"its tag autoscaling-options/{name}={value} is not read{instead}"

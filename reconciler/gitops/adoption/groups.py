"""Describes Auto Scaling groups as entries of a sector config; pure."""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from reconciler.config.rules.names import LABEL_VALUE_MAX
from reconciler.gitops.adoption.adopted_fleet import AdoptedFleet, entry_types
from reconciler.gitops.adoption.group_node_tags import option_notes
from reconciler.gitops.adoption.sizes import (
    Catalogue,
    built_in_kind,
    guessed_kind,
    own_size_of,
    unknown_types,
)
from reconciler.model.fleet import Fleet
from reconciler.planner.fleets.group_tags import template_tags
from reconciler.planner.fleets.live_fleet import LIVE_STATES

_NODE_GROUP: Final = "eks:nodegroup-name"
"""The tag that EKS puts on groups of managed node groups; the groups' own names are far longer."""
_SIZE_MAX: Final = 30
_DIGEST: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


def group_found(
    group: Fleet, catalogue: Catalogue, kinds: Mapping[str, str], *, all_spot: bool = False
) -> AdoptedFleet | str:
    """Return an Auto Scaling group as an entry, or why it cannot be one.

    Args:
        group: The group.
        catalogue: What instance types offer.
        kinds: Kind by sector, where it is known; for a group that names none.
        all_spot: Whether its instances distribution launches spot instances only.
    """
    if group.state not in LIVE_STATES:
        return "it is being deleted"
    types = group.instance_types
    if not types:
        return "no instance types are known of it: one that chooses by attributes has to name them"
    labels = template_tags(group.tags, "label/")
    size = _size(group, labels)
    named = _tagged_value(group, labels, "sector") or group.tags.get(_NODE_GROUP) or group.name
    sector = _as_name(named, LABEL_VALUE_MAX - 1 - len(size))
    kind = known_kind(group) or kinds.get(sector) or guessed_kind(types, catalogue)
    own_size = own_size_of(kind, size, types, catalogue)
    return AdoptedFleet(
        sector=sector,
        kind=kind,
        entry={
            "size": size,
            "provider": "asg",
            "auto_scaling_group": group.id,
            "managed": False,
            "min_capacity": group.min_size or 0,
            "spot": all_spot or group.lifecycle == "spot" or _is_spot(labels),
            **({} if group.max_size is None else {"max_capacity": group.max_size}),
            **entry_types(kind, size, types),
        },
        types=types,
        own_size=own_size,
        counts_nodes=not group.counts_units,
        notes=(
            *_notes(sector, labels),
            *option_notes(group.tags),
            *unknown_types(own_size, types, catalogue),
        ),
    )


def known_kind(group: Fleet) -> str:
    """Return the kind in node labels or tags, or of its built-in size; empty without one."""
    labels = template_tags(group.tags, "label/")
    size = _size(group, labels)
    return _tagged_value(group, labels, "kind") or built_in_kind(size, group.instance_types)


def _size(group: Fleet, labels: Mapping[str, str]) -> str:
    """Return the size in its labels, else its first instance type."""
    first = next(iter(group.instance_types), "").replace(".", "-")
    return _as_name(_tagged_value(group, labels, "size") or first, _SIZE_MAX)


def _tagged_value(group: Fleet, labels: Mapping[str, str], key: str) -> str:
    return labels.get(key) or group.tags.get(key) or ""


def _is_spot(labels: Mapping[str, str]) -> bool:
    lifecycle = labels.get("lifecycle") or labels.get("eks.amazonaws.com/capacityType", "")
    return lifecycle.lower().replace("_", "-") in {"ec2spot", "spot"}


def _as_name(text: str, length_max: int) -> str:
    """Return a label value made from any text: the text itself where it is one."""
    name = _ODD.sub("-", text).strip("-_.")
    if name and len(name) <= length_max:
        return name
    # What is cut off must not make two names equal.
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{name[: length_max - _DIGEST - 1].rstrip('-_.')}-{digest}".lstrip("-")


def _notes(sector: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    if labels.get("sector") == sector:
        return ()
    note = (
        f"nothing says that its nodes carry the label sector={sector}: add it to the group and,"
        " where it is empty now and then, as a node-template tag; pods that select it would not"
        " bind there"
    )
    return (note,)

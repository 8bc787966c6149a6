"""Combines entries into one sector config document; what fleets share is written once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from reconciler.config.resolve import MERGED_VARIABLES
from reconciler.gitops.adoption.adopted_fleet import FOR_PLANNING, AdoptedFleet
from reconciler.records.untrusted_json import mapping

Document = dict[str, Any]
_OF_ONE_FLEET: Final = frozenset(
    {
        "fleet_tags",
        "group_tags",
        "launch_template_by_name",
        "launch_template_description",
        "launch_template_instance_type",
        "launch_template_name",
        "launch_template_tags",
        "launch_template_version",
        "mixed_instances_policy",
        "on_demand_base_capacity",
        "on_demand_percentage_above_base_capacity",
        "overrides",
        "tag_specifications",
        "user_data",
    }
)
"""Variables that keep one fleet as it was found; other fleets must not get them."""


def config_document(
    cluster: str, region: str, found: Sequence[AdoptedFleet], base: Mapping[str, Any]
) -> Document:
    """Return a sector config document, in the order in which people read one.

    Args:
        cluster: The EKS cluster's name.
        region: The home Region; empty: none is stated.
        found: Fleets and groups; one per name.
        base: An existing config document (such as Kluster Fleet Manager's): its keys stay, and what
            it says of a fleet overrides what is found.
    """
    sizes = {**_sizes(found), **mapping(base.get("sizes"))}
    found = [_with_types(entry, sizes) for entry in _with_all_subnets(found)]
    shared = _common(found, [adopted_fleet.terraform for adopted_fleet in found])
    head: Document = {"cluster": cluster}
    if region:
        head["regions"] = [region]
    kept = {k: v for k, v in base.items() if k not in {"cluster", "cluster_name", "sectors"}}
    document = {**head, **kept}
    if sizes:
        document["sizes"] = sizes
    if shared:
        document["terraform"] = {**shared, **mapping(base.get("terraform"))}
    document["sectors"] = _sectors(found, shared, mapping(base.get("sectors")))
    return document


def _sizes(found: Sequence[AdoptedFleet]) -> Document:
    """Return the own sizes; one that sectors of several kinds use has no kind."""
    sizes: Document = {}
    for adopted_fleet in found:
        if adopted_fleet.own_size is None:
            continue
        size = sizes.setdefault(adopted_fleet.entry["size"], dict(adopted_fleet.own_size))
        if size.get("kind") != adopted_fleet.own_size["kind"]:
            size.pop("kind", None)
    return sizes


def _with_types(found: AdoptedFleet, sizes: Mapping[str, Any]) -> AdoptedFleet:
    """Return the entry with its instance types, where they differ from those of its own size."""
    own = mapping(sizes.get(found.entry["size"])).get("instance_types")
    if own is None or list(own) == list(found.types):
        return found
    return replace(found, entry={**found.entry, "instance_types": list(found.types)})


def _sectors(
    found: Sequence[AdoptedFleet], shared: Mapping[str, Any], base: Mapping[str, Any]
) -> Document:
    names = dict.fromkeys([*base, *(adopted_fleet.sector for adopted_fleet in found)])
    return {
        name: _sector(
            [adopted_fleet for adopted_fleet in found if adopted_fleet.sector == name],
            shared,
            base.get(name),
        )
        for name in names
    }


def _sector(found: Sequence[AdoptedFleet], shared: Mapping[str, Any], base: Any) -> Document:
    known = mapping(base)
    rest = [_without(adopted_fleet.terraform, shared) for adopted_fleet in found]
    common = _common(found, rest)
    sector: Document = {"kind": found[0].kind} if found else {}
    sector |= {key: value for key, value in known.items() if key not in {"fleets", "terraform"}}
    if common:
        sector["terraform"] = {**common, **mapping(known.get("terraform"))}
    entries = [dict(fleet) for fleet in known.get("fleets") or () if isinstance(fleet, Mapping)]
    sector["fleets"] = _entries(entries, found, [_without(own, common) for own in rest])
    return sector


def _entries(
    written: list[Document], found: Sequence[AdoptedFleet], own: Sequence[Mapping[str, Any]]
) -> list[Document]:
    """Return the written entries, completed; then those that only EC2 has."""
    live = {}
    for adopted_fleet, variables in zip(found, own, strict=True):
        key = _identity(adopted_fleet.entry)
        live[key] = dict(adopted_fleet.entry) | (
            {"terraform": dict(variables)} if variables else {}
        )
    entries = [_completed(e, live.pop(_identity(e), {})) for e in written]
    return [*entries, *live.values()]


def _identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what distinguishes the fleets of one sector."""
    return tuple(entry.get(key) for key in ("size", "zone", "lifecycle"))


def _completed(written: Document, live: Document) -> Document:
    if "capacity_min" in written:
        live = {key: value for key, value in live.items() if key != "min_capacity"}
    entry = {**live, **written}
    if "terraform" in live and "terraform" in written:
        entry["terraform"] = {**live["terraform"], **mapping(written["terraform"])}
    return entry


def _with_all_subnets(found: Sequence[AdoptedFleet]) -> list[AdoptedFleet]:
    """Return the fleets of one zone with the subnets of all zones, so that all can share them.

    The module picks those of the zone; where fleets disagree about a zone nothing is changed.
    """
    everywhere: dict[str, str] = {}
    for adopted_fleet in found:
        for zone, subnet in mapping(adopted_fleet.terraform.get("private_subnet_ids")).items():
            if everywhere.setdefault(zone, subnet) != subnet:
                return list(found)
    return [
        replace(each, terraform={**each.terraform, "private_subnet_ids": everywhere})
        if each.entry.get("zone") in everywhere
        else each
        for each in found
    ]


def _common(found: Sequence[AdoptedFleet], stated: Sequence[Mapping[str, Any]]) -> Document:
    """Return what all fleets have in common and a future fleet may have too.

    Fleets that Terraform does not manage state only what planning needs, so only such variables
    must be the same for them.
    """
    pairs = [
        (adopted_fleet, own)
        for adopted_fleet, own in zip(found, stated, strict=True)
        if adopted_fleet.terraform
    ]
    shared = _shared(
        [own for adopted_fleet, own in pairs if adopted_fleet.entry.get("managed", True)]
    )
    others = [
        own
        for adopted_fleet, own in zip(found, stated, strict=True)
        if "managed" in adopted_fleet.entry
    ]
    if others:
        for_all = _shared([shared, *others])
        shared = {k: v for k, v in shared.items() if k not in FOR_PLANNING} | for_all
    return {key: value for key, value in shared.items() if key not in _OF_ONE_FLEET}


def _shared(every: Sequence[Mapping[str, Any]]) -> Document:
    """Return what all of them have in common; of variables that add up, the common entries."""
    if not every:
        return {}
    first, *others = every
    shared: Document = {}
    for key, value in first.items():
        if all(key in other and other[key] == value for other in others):
            shared[key] = value
        elif key in MERGED_VARIABLES:
            alike = _shared([value, *(mapping(other.get(key)) for other in others)])
            shared |= {key: alike} if alike else {}
    return shared


def _without(variables: Mapping[str, Any], shared: Mapping[str, Any]) -> Document:
    """Return the variables that `shared` does not state already."""
    rest: Document = {}
    for key, value in variables.items():
        if key in MERGED_VARIABLES and key in shared:
            own = {k: v for k, v in value.items() if shared[key].get(k) != v}
            rest |= {key: own} if own else {}
        elif key not in shared:
            rest[key] = value
    return rest

"""Makes a sector config and import blocks for existing fleets and groups; pure.

The config is checked by the same rules as any other; the import blocks bring fleets and launch
templates into the state of the rendered root, so that the first plan creates nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from reconciler.config.document import write_document
from reconciler.config.fleet_name import fleet_name
from reconciler.config.loader import parse_config
from reconciler.config.schema import SectorConfig
from reconciler.config.sizes import BUILT_IN_KINDS
from reconciler.gitops.adoption import groups as auto_scaling
from reconciler.gitops.adoption.adopted_fleet import (
    SHARED,
    AdoptedFleet,
    fleet_found,
    group_left,
    group_taken_over,
    known_kind,
)
from reconciler.gitops.adoption.document import Document, config_document
from reconciler.gitops.adoption.limits import with_limits
from reconciler.gitops.rendering.hcl import to_hcl
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.gitops.terraform_plan.planned import FLEET, GROUP
from reconciler.model.errors import ConfigError
from reconciler.model.fleet import Fleet, InstanceType
from reconciler.model.fleet_description import FleetDescription

_CONFIG_HEADER = (
    "# Written by `reconciler import` from what exists: read it, then keep it in git.\n"
)
_LINE: Final = re.compile(r" on line \d+")
_IMPORTS_HEADER = "# Written by `reconciler import`; remove it once it was applied.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Holds the sector config and the import blocks that describe what AWS has."""

    config: bytes
    """The sector config, YAML."""
    imports: bytes
    """Terraform import blocks for the rendered root; empty when there are no fleets to import."""
    fleets: tuple[str, ...]
    """Names of the fleets and groups in the config."""
    left_out: Mapping[str, str]
    """Fleets and groups by id that are not in the config, with the reason."""
    notes: tuple[str, ...]
    """What to check before the first apply."""


def adopt(
    cluster: str,
    fleets: Sequence[FleetDescription],
    groups: Sequence[Fleet] = (),
    *,
    described: Sequence[FleetDescription] = (),
    region: str = "",
    base: Mapping[str, Any] | None = None,
    catalogue: Mapping[str, InstanceType],
) -> Adoption:
    """Describe existing fleets and groups as a sector config.

    A fleet that breaks a rule of sector configs, by itself or together with others, is left out, so
    that the others can be adopted.

    Args:
        cluster: The EKS cluster's name.
        fleets: EC2 Fleets of the cluster.
        groups: Auto Scaling groups of the cluster.
        described: What Terraform needs to know of these groups.
        region: The home Region, stated in the config unless `base` states one.
        base: An existing config document; it overrides what is found.
        catalogue: What instance types offer.

    Raises:
        ConfigError: The result breaks a rule of sector configs; every fault is named.
    """
    stated = base or {}
    existing = _Existing(
        cluster=cluster,
        fleets={fleet.id: fleet for fleet in fleets},
        groups=groups,
        described={group.id: group for group in described},
        catalogue=catalogue,
        users=Counter(
            fleet_description.template.id
            for fleet_description in (*fleets, *described)
            if fleet_description.template
        ),
    )
    chosen, left_out = _chosen(existing, stated)
    document = partial(config_document, cluster, region, base=stated)
    adopted_fleets, misfits = _fitting(chosen, document)
    left_out |= misfits
    text = _CONFIG_HEADER + write_document(document(list(adopted_fleets.values())))
    config = parse_config(text, name="sectors.yaml")
    names = _fleet_names(config)
    return Adoption(
        config=text.encode(),
        imports=_import_blocks(_to_import(config, adopted_fleets)),
        fleets=names,
        left_out=left_out,
        notes=tuple(
            _notes(config, adopted_fleets, names, _names_in_ec2(existing.fleets, left_out))
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Existing:
    """What AWS has for a cluster."""

    cluster: str
    fleets: Mapping[str, FleetDescription]
    """EC2 Fleets by id."""
    groups: Sequence[Fleet]
    """Auto Scaling groups."""
    described: Mapping[str, FleetDescription]
    """By id, what Terraform needs to know of the groups."""
    catalogue: Mapping[str, InstanceType]
    """What instance types offer."""
    users: Counter[str]
    """How many fleets and groups launch from each launch template, by its id."""

    def shares_template(self, one: FleetDescription) -> bool:
        """Return whether another fleet or group launches from the same launch template."""
        return one.template is not None and self.users[one.template.id] > 1


def _chosen(
    existing: _Existing, base: Mapping[str, Any]
) -> tuple[dict[str, AdoptedFleet], dict[str, str]]:
    """Return the config's entries by name, and by id why others are left out.

    An entry is left out if it breaks a rule by itself, or clashes with one that was chosen before.
    """
    adopted_fleets: dict[str, AdoptedFleet] = {}
    left_out: dict[str, str] = {}
    kinds, written = _stated_kinds(base), _written(base)
    for each_id, one in _all_found(existing, kinds):
        if isinstance(one, str):
            left_out[each_id] = one
            continue
        fleet = existing.fleets.get(each_id)
        if fleet is not None:
            # Limits that contradict each other leave this fleet out, and no other.
            limits = (fleet.tags, fleet.target_capacity, written.get(one.name, {}))
            one = with_limits(one, *limits)  # noqa: PLW2901 - completed
        reason = _clash(one, adopted_fleets, kinds) or _fault_alone(existing.cluster, one)
        if reason:
            left_out[each_id] = reason
            continue
        kinds.setdefault(one.sector, one.kind)
        if each_id in existing.described:
            one = _taken_over(one, existing.described[each_id], existing)  # noqa: PLW2901 - completed
        adopted_fleets[one.name] = one
    return dict(sorted(adopted_fleets.items())), left_out


def _fitting(
    chosen: Mapping[str, AdoptedFleet], document: Callable[[Sequence[AdoptedFleet]], Document]
) -> tuple[Mapping[str, AdoptedFleet], dict[str, str]]:
    """Return the entries that one config can have, and by id why others are left out.

    Only if they do not fit together is each one tried with those before it.
    """
    if not _fault(document(list(chosen.values()))):
        return chosen, {}
    fitting: dict[str, AdoptedFleet] = {}
    left_out: dict[str, str] = {}
    for name, one in chosen.items():
        fault = _fault(document([*fitting.values(), one]))
        if fault:
            # A line would be one of a document that is not written.
            left_out[_id_of(one)] = _LINE.sub("", fault)
        else:
            fitting[name] = one
    return fitting, left_out


def _id_of(one: AdoptedFleet) -> str:
    """Return the id of the fleet, or the name of the group."""
    return one.fleet_id or str(one.entry.get("auto_scaling_group", ""))


def _stated_kinds(base: Mapping[str, Any]) -> dict[str, str]:
    """Return the kinds of the sectors that a config document states, by sector."""
    return {
        name: sector["kind"]
        for name, sector in (base.get("sectors") or {}).items()
        if isinstance(sector, Mapping) and "kind" in sector
    }


def _fleet_names(config: SectorConfig) -> tuple[str, ...]:
    """Return the names of the fleets and groups of a config, in its order."""
    return tuple(
        fleet_name(sector_name, fleet.size, fleet.zone, fleet.lifecycle)
        for sector_name, sector in config.sectors.items()
        for fleet in sector.fleets
    )


def _to_import(config: SectorConfig, found: Mapping[str, AdoptedFleet]) -> Sequence[AdoptedFleet]:
    """Return those that the rendered root makes, if their launch template is imported too."""
    rendered = root_module_of(config).fleets
    return [
        adopted_fleet
        for name, adopted_fleet in found.items()
        if name in rendered and adopted_fleet.has_template
    ]


def _taken_over(one: AdoptedFleet, group: FleetDescription, existing: _Existing) -> AdoptedFleet:
    """Return the group as one that Terraform makes; if that is impossible, as one made by others.

    Args:
        one: The group's entry as one made by others.
        group: What Terraform needs to know of it.
        existing: All that AWS has.
    """
    if existing.shares_template(group):
        return group_left(one, SHARED)
    adopted_fleet = group_taken_over(one, group, existing.cluster)
    reason = _fault_alone(existing.cluster, adopted_fleet)
    return group_left(one, reason) if reason else adopted_fleet


def _written(base: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the entries of fleets in a config document, by name."""
    return {
        fleet_name(name, *(str(entry.get(k) or "") for k in ("size", "zone", "lifecycle"))): entry
        for name, sector in (base.get("sectors") or {}).items()
        if isinstance(sector, Mapping)
        for entry in sector.get("fleets") or ()
        if isinstance(entry, Mapping)
    }


def _all_found(
    existing: _Existing, kinds: Mapping[str, str]
) -> Iterator[tuple[str, AdoptedFleet | str]]:
    """Yield all; those with a known kind first, as others take the kind of their sector."""
    shared = existing.shares_template
    looks = [
        (
            fleet.id,
            bool(known_kind(fleet)),
            partial(fleet_found, fleet, cluster=existing.cluster, shared=shared(fleet)),
        )
        for fleet in existing.fleets.values()
    ]
    described = existing.described
    looks += [
        (
            group.id,
            bool(auto_scaling.known_kind(group)),
            partial(
                auto_scaling.group_found, group, all_spot=_is_all_spot(described.get(group.id))
            ),
        )
        for group in existing.groups
    ]
    known = dict(kinds)
    for each_id, _, look in sorted(looks, key=lambda look: not look[1]):
        one = look(existing.catalogue, known)
        if isinstance(one, AdoptedFleet):
            known.setdefault(one.sector, one.kind)
        yield each_id, one


def _is_all_spot(described: FleetDescription | None) -> bool:
    """Return whether the group's instances distribution launches spot instances only."""
    group = described.group if described is not None else None
    return group is not None and not group.on_demand_percentage and not group.on_demand_base


def _clash(
    one: AdoptedFleet, found: Mapping[str, AdoptedFleet], kinds: Mapping[str, str]
) -> str | None:
    """Return why an entry conflicts with existing ones; None when it does not."""
    other = found.get(one.name)
    if other is not None:
        return f"{_id_of(other)} is {one.name} already: one size a sector, zone and lifecycle"
    kind = kinds.get(one.sector, one.kind)
    if kind != one.kind:
        return f"sector {one.sector} is of kind {kind}, this of {one.kind}"
    size = one.entry["size"]
    for adopted_fleet in found.values():
        both = {adopted_fleet.kind, one.kind}
        if (
            adopted_fleet.own_size
            and adopted_fleet.entry["size"] == size
            and len(both) > 1
            and not both <= {*BUILT_IN_KINDS}
        ):
            return f"size {size} is of kind {adopted_fleet.kind} already, this of {one.kind}"
    return None


def _fault_alone(cluster: str, one: AdoptedFleet) -> str:
    """Return the first rule that an entry breaks by itself, and where; empty if none."""
    return _fault(config_document(cluster, "", [one], {}))


def _fault(document: Document) -> str:
    """Return the first rule that a config breaks, and where; empty if none."""
    try:
        parse_config(write_document(document))
    except ConfigError as error:
        first = error.problems[0]
        return f"{first.path}: {first.message}" if first.path else first.message
    return ""


def _import_blocks(found: Sequence[AdoptedFleet]) -> bytes:
    blocks = []
    for adopted_fleet in found:
        is_group = adopted_fleet.entry.get("provider") == "asg"
        call, kind = ("group", GROUP) if is_group else ("fleet", FLEET)
        module = f"module.fleets.module.{call}[{to_hcl(adopted_fleet.name)}]"
        blocks.append((f"{module}.{kind}.this", adopted_fleet.fleet_id))
        if adopted_fleet.has_template:
            blocks.append((f"{module}.aws_launch_template.this", adopted_fleet.template_id))
    if not blocks:
        return b""
    texts = [f"import {{\n  to = {to}\n  id = {to_hcl(each_id)}\n}}\n" for to, each_id in blocks]
    return (_IMPORTS_HEADER + "\n".join(texts)).encode()


def _names_in_ec2(
    fleets: Mapping[str, FleetDescription], left_out: Iterable[str]
) -> dict[str, str]:
    """Return the ids of fleets that are left out, by the name that their tags state."""
    tags = {each_id: fleets[each_id].tags for each_id in left_out if each_id in fleets}
    return {
        each.get("fleet") or fleet_name(each.get("sector", ""), each.get("size", "")): each_id
        for each_id, each in sorted(tags.items())
    }


def _notes(
    config: SectorConfig,
    found: Mapping[str, AdoptedFleet],
    names: Sequence[str],
    left_out: Mapping[str, str],
) -> Iterable[str]:
    for name in names:
        if name in found:
            continue
        if name in left_out:
            there = left_out[name]
            yield f"{name}: is in EC2 as {there}, which is left out; an apply may make another"
        else:
            yield f"{name}: is in the config but not in EC2; the first apply creates it"
    if found and not config.default_sector:
        groups = any(one.entry.get("provider") == "asg" for one in found.values())
        yield "pods that name no sector are left alone: state default_sector" + (
            " (without any sectors in the config all groups serve all pods)" if groups else ""
        )
    for name, one in found.items():
        yield from (f"{name}: {note}" for note in one.notes)

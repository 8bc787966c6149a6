"""A sector config and import blocks for what exists already: pure.

The config is checked by the same rules as any other; the import blocks bring fleets and launch
templates into the state of the rendered root, so that the first plan creates nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.config.document import write_document
from reconciler.config.loader import parse_config
from reconciler.gitops.adoption.document import config_document
from reconciler.gitops.adoption.found import Found, fleet_found, group_found
from reconciler.gitops.hcl import to_hcl
from reconciler.gitops.root_module import root_module_of
from reconciler.model.fleet import Fleet, InstanceType
from reconciler.model.fleet_description import FleetDescription

_CONFIG_HEADER = (
    "# Written by `reconciler import` from what exists: read it, then keep it in git.\n"
)
_IMPORTS_HEADER = "# Written by `reconciler import`; remove it once it was applied.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What adopting comes to."""

    config: bytes
    """The sector config, YAML."""
    imports: bytes
    """Terraform import blocks for the rendered root; empty without fleets of ours to import."""
    fleets: tuple[str, ...]
    """Names of the fleets and groups that the config has."""
    left_out: Mapping[str, str]
    """Fleets and groups by id that it does not have, with the reason."""
    notes: tuple[str, ...]
    """What to look at before the first apply."""


def adopt(
    cluster: str,
    fleets: Sequence[FleetDescription],
    groups: Sequence[Fleet] = (),
    *,
    region: str = "",
    base: Mapping[str, Any] | None = None,
    catalogue: Mapping[str, InstanceType],
) -> Adoption:
    """Describe what exists as a sector config.

    Args:
        cluster: The EKS cluster's name.
        fleets: EC2 Fleets of the cluster.
        groups: Auto Scaling groups of the cluster.
        region: The home Region, stated in the config unless `base` states one.
        base: A config document that exists; it wins over what is found.
        catalogue: What instance types have.

    Raises:
        ConfigError: What was found breaks a rule of sector configs; every fault is named.
    """
    left_out: dict[str, str] = {}
    found: dict[str, Found] = {}
    kinds: dict[str, str] = {
        name: sector["kind"]
        for name, sector in ((base or {}).get("sectors") or {}).items()
        if isinstance(sector, Mapping) and "kind" in sector
    }
    for each_id, one in _all_found(fleets, groups, catalogue):
        reason = one if isinstance(one, str) else _clash(one, found, kinds)
        if isinstance(one, str) or reason:
            left_out[each_id] = reason
            continue
        kinds.setdefault(one.sector, one.kind)
        found[one.name] = one
    found = dict(sorted(found.items()))
    document = config_document(cluster, region, list(found.values()), base or {})
    text = _CONFIG_HEADER + write_document(document)
    config = parse_config(text, name="sectors.yaml")
    rendered = root_module_of(config).fleets
    imported = [each for name, each in found.items() if name in rendered and each.fleet_id]
    names = tuple(
        "-".join(filter(None, (sector_name, fleet.size, fleet.zone)))
        for sector_name, sector in config.sectors.items()
        for fleet in sector.fleets
    )
    return Adoption(
        config=text.encode(),
        imports=_import_blocks(cluster, imported),
        fleets=names,
        left_out=left_out,
        notes=tuple(_notes(cluster, found, names, imported)),
    )


def _all_found(
    fleets: Sequence[FleetDescription],
    groups: Sequence[Fleet],
    catalogue: Mapping[str, InstanceType],
) -> Iterable[tuple[str, Found | str]]:
    for fleet in fleets:
        yield fleet.id, fleet_found(fleet, catalogue)
    for group in groups:
        yield group.id, group_found(group, catalogue)


def _clash(one: Found, found: Mapping[str, Found], kinds: Mapping[str, str]) -> str:
    """Why an entry cannot stand beside those that are there; empty when it can."""
    other = found.get(one.name)
    if other is not None:
        return f"{other.fleet_id or other.name} is {one.name} already: one size a sector and zone"
    kind = kinds.get(one.sector, one.kind)
    return "" if kind == one.kind else f"sector {one.sector} is of kind {kind}, this of {one.kind}"


def _import_blocks(cluster: str, found: Sequence[Found]) -> bytes:
    blocks = []
    for each in found:
        module = f"module.fleets.module.fleet[{to_hcl(each.name)}]"
        blocks.append((f"{module}.aws_ec2_fleet.this", each.fleet_id))
        if each.template_name == _template_name(cluster, each):
            blocks.append((f"{module}.aws_launch_template.this", each.template_id))
    if not blocks:
        return b""
    texts = [f"import {{\n  to = {to}\n  id = {to_hcl(each_id)}\n}}\n" for to, each_id in blocks]
    return (_IMPORTS_HEADER + "\n".join(texts)).encode()


def _template_name(cluster: str, found: Found) -> str:
    """What the eks_fleet module calls the launch template of a fleet."""
    return f"{cluster}-{found.name}"


def _notes(
    cluster: str, found: Mapping[str, Found], names: Sequence[str], imported: Sequence[Found]
) -> Iterable[str]:
    for name in names:
        if name not in found:
            yield f"{name}: is in the config but not in EC2; the first apply creates it"
    for each in imported:
        wanted = _template_name(cluster, each)
        if each.template_name and each.template_name != wanted:
            yield (
                f"{each.name}: its launch template is called {each.template_name}; a new one"
                f" ({wanted}) is made, and new nodes come from that"
            )
    for name, one in found.items():
        yield from (f"{name}: {note}" for note in one.notes)

"""Living fleets as entries of a sector config: pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.config.sizes import BUILT_IN_SIZES
from reconciler.gitops.adoption.sizes import (
    Catalogue,
    built_in_kind,
    guessed_kind,
    own_size_of,
    unknown_types,
)
from reconciler.gitops.adoption.user_data import Boot, read_boot
from reconciler.model.fleet_description import (
    FleetDescription,
    LaunchTemplateDescription,
    VolumeDescription,
)

OWN_LABELS: Final = frozenset({"sector", "fleet", "size", "pool_size", "kind", "lifecycle"})
_OWN_TAGS: Final = frozenset({"Name", "Spot", "cluster", "fleet", "kind", "sector", "size"})
_NOT_OURS_TO_SET: Final = frozenset({"managed", "name"})
"""Reserved, though the module does not set them."""
_DATA_DEVICES: Final = {"BOTTLEROCKET": "/dev/xvdb"}
_ROOT_DEVICE: Final = "/dev/xvda"
_EMPTY_TEMPLATE: Final = LaunchTemplateDescription(id="", name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One fleet or group, on its way into a config."""

    sector: str
    kind: str
    entry: Mapping[str, Any]
    """The fleet's own keys as the config writes them; `size` first."""
    terraform: Mapping[str, Any] = field(default_factory=dict)
    """Its module variables."""
    types: tuple[str, ...] = ()
    """Instance types that it may launch, in its own order."""
    own_size: Mapping[str, Any] | None = None
    """What `sizes` has to say of its size; None: a built-in one."""
    fleet_id: str = ""
    template_id: str = ""
    template_name: str = ""
    notes: tuple[str, ...] = ()
    """What could not be carried over, one sentence each."""

    @property
    def name(self) -> str:
        """The name that the config gives it."""
        return "-".join(filter(None, (self.sector, self.entry["size"], self.entry.get("zone"))))


def entry_types(kind: str, size: str, types: tuple[str, ...]) -> dict[str, Any]:
    """`instance_types` of an entry of a built-in size; nothing where they are the size's own."""
    built_in = BUILT_IN_SIZES.get((kind, size))
    other = built_in is not None and types != built_in.instance_types
    return {"instance_types": list(types)} if other else {}


def fleet_found(
    fleet: FleetDescription, catalogue: Catalogue, kinds: Mapping[str, str]
) -> Found | str:
    """A fleet as an entry, or why it cannot be one.

    Args:
        fleet: The fleet.
        catalogue: What instance types have.
        kinds: Kind by sector, where it is known; for a fleet whose tags name none.
    """
    template = fleet.template or _EMPTY_TEMPLATE
    types = _types(fleet)
    unfit = _unfit(fleet, types)
    if unfit:
        return unfit
    tags = fleet.tags
    sector, size = tags["sector"], tags["size"]
    kind = known_kind(fleet) or kinds.get(sector) or guessed_kind(types, catalogue)
    boot, zone = read_boot(template.user_data), _zone(fleet, sector, size)
    own_size = own_size_of(kind, size, types, catalogue)
    return Found(
        sector=sector,
        kind=kind,
        entry={
            "size": size,
            "spot": fleet.spot,
            **({"zone": zone} if zone else {}),
            **entry_types(kind, size, types),
        },
        terraform=_variables(fleet, template, boot),
        types=types,
        own_size=own_size,
        fleet_id=fleet.id,
        template_id=template.id,
        template_name=template.name,
        notes=(*_notes(fleet, template, boot), *unknown_types(own_size, types, catalogue)),
    )


def known_kind(fleet: FleetDescription) -> str:
    """What its tags name, or that of the built-in size that it has; empty when neither tells."""
    return fleet.tags.get("kind") or built_in_kind(fleet.tags.get("size", ""), _types(fleet))


def _types(fleet: FleetDescription) -> tuple[str, ...]:
    template = fleet.template or _EMPTY_TEMPLATE
    return fleet.instance_types or tuple(filter(None, [template.instance_type]))


def _unfit(fleet: FleetDescription, types: tuple[str, ...]) -> str:
    """Why no entry can describe a fleet; empty when one can."""
    if not fleet.tags.get("sector") or not fleet.tags.get("size"):
        return "its tags name no sector and size"
    if not types:
        return "no instance types are known of it: give describe-launch-template-versions"
    if fleet.weighted:
        return "its instance types have weights: its target counts units, here it would be nodes"
    if fleet.several_templates:
        return "it launches from several launch templates; the module has one"
    return ""


def _zone(fleet: FleetDescription, sector: str, size: str) -> str:
    """The one zone that is part of a fleet's name; a fleet may have one subnet without that."""
    named = fleet.tags.get("fleet", "")
    zones = set(fleet.zones.values())
    return next((zone for zone in zones if named == f"{sector}-{size}-{zone}"), "")


def _variables(
    fleet: FleetDescription, template: LaunchTemplateDescription, boot: Boot
) -> dict[str, Any]:
    """The eks_fleet module's variables that make such a fleet; without those at their defaults."""
    volume = _data_volume(template, boot)
    found = {
        "ami": "" if _is_looked_up(template) else template.image_id,
        "ami_type": "BOTTLEROCKET" if boot.ami_type == "BOTTLEROCKET" else "",
        "security_group_id": next(iter(template.security_group_ids), ""),
        "private_subnet_ids": {fleet.zones[s]: s for s in fleet.subnet_ids if s in fleet.zones},
        "ssh_key_name": template.key_name,
        "instance_profile_name": template.instance_profile_name,
        "metadata_hop_limit": _unless(template.metadata_hop_limit, 1),
        "max_price": fleet.max_price,
        "spot_allocation_strategy": _unless(_strategy(fleet), "price-capacity-optimized"),
        "ebs_size": _unless(volume.size_gib, 50),
        "ebs_type": _unless(volume.type, "gp3"),
        "ebs_iops": volume.iops if volume.type in {"io1", "io2"} else _unless(volume.iops, 3000),
        "ebs_throughput": _unless(volume.throughput_mib_per_second, 125),
        "ebs_kms_key_id": volume.kms_key_id,
        "node_labels": {k: v for k, v in boot.labels.items() if k not in OWN_LABELS},
        "node_taints": [dict(each) for each in boot.taints if not _is_lifecycle(each, fleet)],
        "tags": _own_tags_left_out(fleet),
        **boot.variables,
    }
    stated = {key: value for key, value in found.items() if value}
    if volume.encrypted is False:
        stated["ebs_encrypted"] = False
    if any(_is_lifecycle(each, fleet) for each in boot.taints):
        stated["on_demand_prefer_no_schedule_taint"] = True
    return stated


def _is_looked_up(template: LaunchTemplateDescription) -> bool:
    """Whether EC2 looks the image up at each launch, in a parameter of Systems Manager."""
    return template.image_id.startswith("resolve:")


def _strategy(fleet: FleetDescription) -> str:
    """The module's word for the allocation strategy; EC2 answers in two spellings."""
    words = {
        "priceCapacityOptimized": "price-capacity-optimized",
        "capacityOptimized": "capacity-optimized",
        "lowest-price": "lowestPrice",
    }
    return words.get(fleet.allocation_strategy, fleet.allocation_strategy) if fleet.spot else ""


def _data_volume(template: LaunchTemplateDescription, boot: Boot) -> VolumeDescription:
    device = _DATA_DEVICES.get(boot.ami_type or "", _ROOT_DEVICE)
    volumes = {volume.device_name: volume for volume in template.volumes}
    first = next(iter(template.volumes), VolumeDescription(device_name=device))
    return volumes.get(device, first)


def _is_lifecycle(taint: Mapping[str, str], fleet: FleetDescription) -> bool:
    wanted = {"key": "lifecycle", "value": "OnDemand", "effect": "PreferNoSchedule"}
    return not fleet.spot and dict(taint) == wanted


def _own_tags_left_out(fleet: FleetDescription) -> dict[str, str]:
    return {
        key: value
        for key, value in fleet.tags.items()
        if key not in _OWN_TAGS | _NOT_OURS_TO_SET
        and not key.startswith(("kubernetes.io/cluster/", "aws:"))
    }


def _unless(value: Any, default: Any) -> Any:
    return None if value == default else value


def _notes(fleet: FleetDescription, template: LaunchTemplateDescription, boot: Boot) -> list[str]:
    notes = []
    if fleet.template is None:
        notes.append("its launch template was not read, so image and network are missing")
    elif boot.ami_type is None:
        notes.append("its user data is of neither AL2023 nor Bottlerocket: labels and taints were")
        notes[-1] += " looked for, everything else in it would go with the next launch"
    if boot.has_more:
        notes.append("its user data has more parts than a NodeConfig: they go with the next launch")
    if _is_looked_up(template):
        looked_up = template.image_id.removeprefix("resolve:ssm:")
        notes.append(f"its image is what the parameter {looked_up} names; state its id as `ami`")
    notes += [
        f"its tag {key} has a reserved key; it goes with the first apply"
        for key in sorted(_NOT_OURS_TO_SET & fleet.tags.keys())
    ]
    if len(template.security_group_ids) > 1:
        notes.append("it has several security groups; the module takes the first")
    if len(template.volumes) > 1:
        notes.append("it has several volumes; the module makes one")
    if len(fleet.zones) < len(fleet.subnet_ids):
        notes.append("the zones of some of its subnets are unknown: give describe-subnets")
    if len(set(fleet.zones.values())) < len(fleet.zones):
        notes.append("it has several subnets in a zone; the module takes one of each")
    return notes

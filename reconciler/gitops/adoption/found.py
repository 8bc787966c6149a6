"""Living fleets and groups as entries of a sector config: pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.config.sizes import BUILT_IN_KINDS, BUILT_IN_SIZES
from reconciler.gitops.adoption.user_data import Boot, read_boot
from reconciler.model.fleet import Fleet, InstanceType
from reconciler.model.fleet_description import (
    FleetDescription,
    LaunchTemplateDescription,
    VolumeDescription,
)

NODE_TEMPLATE: Final = "k8s.io/cluster-autoscaler/node-template/"
OWN_LABELS: Final = frozenset({"sector", "fleet", "size", "pool_size", "kind", "lifecycle"})
_OWN_TAGS: Final = frozenset({"Name", "Spot", "cluster", "fleet", "kind", "sector", "size"})
_GIB: Final = 2**30
_MEMORY_PER_CPU_BYTES: Final = 4 * _GIB
"""From 4 GiB per vCPU on (m, r, x families) a type is taken for `memory`."""
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


def fleet_found(fleet: FleetDescription, catalogue: Mapping[str, InstanceType]) -> Found | str:
    """A fleet as an entry, or why it cannot be one."""
    tags, template = fleet.tags, fleet.template or _EMPTY_TEMPLATE
    sector, size = tags.get("sector", ""), tags.get("size", "")
    types = fleet.instance_types or tuple(filter(None, [template.instance_type]))
    if not sector or not size:
        return "its tags name no sector and size"
    if not types:
        return "no instance types are known of it: give describe-launch-template-versions"
    kind = tags.get("kind") or _kind(size, types, catalogue)
    boot = read_boot(template.user_data)
    zone = _zone(fleet, sector, size)
    entry: dict[str, Any] = {"size": size, "spot": fleet.spot}
    if zone:
        entry["zone"] = zone
    own_size = _own_size(kind, size, types, catalogue)
    built_in = BUILT_IN_SIZES.get((kind, size))
    if built_in is not None and types != built_in.instance_types:
        entry["instance_types"] = list(types)
    return Found(
        sector=sector,
        kind=kind,
        entry=entry,
        terraform=_variables(fleet, template, boot),
        own_size=own_size,
        fleet_id=fleet.id,
        template_id=template.id,
        template_name=template.name,
        notes=(*_notes(fleet, template, boot), *_unknown(own_size, types, catalogue)),
    )


def group_found(group: Fleet, catalogue: Mapping[str, InstanceType]) -> Found | str:
    """An Auto Scaling group as an entry, or why it cannot be one."""
    types = group.instance_types
    if not types:
        return "no instance types are known of it"
    labels = {
        key.removeprefix(f"{NODE_TEMPLATE}label/"): value
        for key, value in group.tags.items()
        if key.startswith(f"{NODE_TEMPLATE}label/")
    }
    size = labels.get("size") or group.tags.get("size") or types[0].replace(".", "-")
    sector = labels.get("sector") or group.tags.get("sector") or group.name
    kind = labels.get("kind") or group.tags.get("kind") or _kind(size, types, catalogue)
    lifecycle = labels.get("lifecycle") or labels.get("eks.amazonaws.com/capacityType", "")
    entry: dict[str, Any] = {
        "size": size,
        "provider": "asg",
        "auto_scaling_group": group.id,
        "min_capacity": group.min_size or 0,
        "spot": lifecycle.lower().replace("_", "-") in {"ec2spot", "spot"},
    }
    if group.max_size is not None:
        entry["max_capacity"] = group.max_size
    own_size = _own_size(kind, size, types, catalogue)
    notes = _unknown(own_size, types, catalogue)
    return Found(sector=sector, kind=kind, entry=entry, own_size=own_size, notes=notes)


def _zone(fleet: FleetDescription, sector: str, size: str) -> str:
    """The one zone that is part of a fleet's name; a fleet may have one subnet without that."""
    named = fleet.tags.get("fleet", "")
    zones = set(fleet.zones.values())
    return next((zone for zone in zones if named == f"{sector}-{size}-{zone}"), "")


def _kind(size: str, types: tuple[str, ...], catalogue: Mapping[str, InstanceType]) -> str:
    """The built-in kind with these types, else by the first known type's memory per vCPU."""
    for kind in BUILT_IN_KINDS:
        built_in = BUILT_IN_SIZES.get((kind, size))
        if built_in is not None and set(types) <= set(built_in.instance_types):
            return kind
    known = next((catalogue[name] for name in types if name in catalogue), None)
    if known is None:
        return "memory"
    return (
        "memory" if known.memory_bytes * 1000 >= known.cpu_milli * _MEMORY_PER_CPU_BYTES else "cpu"
    )


def _own_size(
    kind: str, size: str, types: tuple[str, ...], catalogue: Mapping[str, InstanceType]
) -> dict[str, Any] | None:
    """An own size for names that the built-in tables lack: the least that every type gives."""
    if (kind, size) in BUILT_IN_SIZES:
        return None
    known = [catalogue[name] for name in types if name in catalogue]
    if not known:
        return {"kind": kind, "cpu": 1, "memory": "1Gi", "instance_types": list(types)}
    cpu_milli = min(each.cpu_milli for each in known)
    made: dict[str, Any] = {
        "kind": kind,
        "cpu": cpu_milli // 1000 if cpu_milli % 1000 == 0 else f"{cpu_milli}m",
        "memory": f"{min(each.memory_bytes for each in known) // 2**20}Mi",
        "instance_types": list(types),
    }
    gpus = min(each.gpus for each in known)
    return {**made, "extended": {"nvidia.com/gpu": gpus}} if gpus else made


def _unknown(
    own_size: Mapping[str, Any] | None,
    types: tuple[str, ...],
    catalogue: Mapping[str, InstanceType],
) -> tuple[str, ...]:
    if own_size is None or any(name in catalogue for name in types):
        return ()
    return ("the catalogue knows none of its instance types: correct CPU and memory of its size",)


def _variables(
    fleet: FleetDescription, template: LaunchTemplateDescription, boot: Boot
) -> dict[str, Any]:
    """The eks_fleet module's variables that make such a fleet; without those at their defaults."""
    volume = _data_volume(template, boot)
    found = {
        "ami": template.image_id,
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
        if key not in _OWN_TAGS and not key.startswith(("kubernetes.io/cluster/", "aws:"))
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
    if len(template.security_group_ids) > 1:
        notes.append("it has several security groups; the module takes the first")
    if len(template.volumes) > 1:
        notes.append("it has several volumes; the module makes one")
    if len(fleet.zones) < len(fleet.subnet_ids):
        notes.append("the zones of some of its subnets are unknown: give describe-subnets")
    if len(set(fleet.zones.values())) < len(fleet.zones):
        notes.append("it has several subnets in a zone; the module takes one of each")
    return notes

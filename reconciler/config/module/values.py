"""Module variables that contradict each other, and fleets beyond EC2's limits."""

from collections.abc import Callable, Iterator
from typing import Final

from reconciler.config.faults import MODULE_LIMIT, MODULE_VALUE
from reconciler.config.module.fleet import WrittenFleet, rendered_fleets
from reconciler.config.module.groups import GROUP_RULES
from reconciler.config.module.template import (
    fleet_tags_fit,
    overrides_fit,
    subnets_differ,
    tags_name_no_other_cluster,
    template_fits,
    templates_once,
)
from reconciler.config.module.user_data import user_data_bytes
from reconciler.config.resolve import OF_SPOT
from reconciler.config.rules.document import Document
from reconciler.config.schema import SectorConfig
from reconciler.config.terraform import IMAGE_PARAMETER, is_ami_alias
from reconciler.model.errors import Problem

OVERRIDES_MAX: Final = 300
"""Instance types times subnets of one fleet (EC2 Fleet quotas, read 2026)."""
GP3_IOPS_MIN: Final = 3000
"""EBS user guide, General Purpose SSD volumes, read 2026-11."""
USER_DATA_BYTES_MAX: Final = 16_384
"""EC2 RunInstances: user data before base64."""


def check_module_values(document: Document, config: SectorConfig) -> Iterator[Problem]:
    """Yield values that the module refuses whatever else is stated; every command refuses them."""
    fleets = tuple(rendered_fleets(document, config))
    for fleet in fleets:
        for rule in _RULES:
            yield from rule(fleet)
    yield from templates_once(fleets)


def _volume(fleet: WrittenFleet) -> Iterator[Problem]:
    kind = fleet.text("ebs_type") or "gp3"
    iops, throughput = fleet.value("ebs_iops"), fleet.value("ebs_throughput")
    if iops is None and kind in {"io1", "io2"}:
        message = f"ebs_type {kind} needs ebs_iops"
        yield fleet.problem(MODULE_VALUE, "ebs_type", message)
    if iops is not None and kind == "gp3" and iops < GP3_IOPS_MIN:
        message = f"ebs_iops of a gp3 volume must be {GP3_IOPS_MIN} or more, its baseline"
        yield fleet.problem(MODULE_VALUE, "ebs_iops", message)
    if iops is not None and kind == "gp2":
        message = "ebs_iops is for gp3, io1 and io2; ebs_type gp2 must leave it out"
        yield fleet.problem(MODULE_VALUE, "ebs_iops", message)
    if throughput is not None and kind != "gp3":
        message = f"ebs_throughput is for gp3; ebs_type {kind} must leave it out"
        yield fleet.problem(MODULE_VALUE, "ebs_throughput", message)
    if fleet.text("ebs_kms_key_id") and fleet.value("ebs_encrypted") is False:
        message = "ebs_kms_key_id needs ebs_encrypted: true"
        yield fleet.problem(MODULE_VALUE, "ebs_kms_key_id", message)


def _bootstrap(fleet: WrittenFleet) -> Iterator[Problem]:
    bottlerocket = fleet.text("ami_type") == "BOTTLEROCKET"
    if not fleet.text("cluster_endpoint"):
        if bottlerocket:
            message = "ami_type BOTTLEROCKET needs cluster_endpoint and cluster_ca"
            yield fleet.problem(MODULE_VALUE, "ami_type", message)
        return
    if not fleet.text("cluster_ca"):
        message = "cluster_endpoint needs cluster_ca as well"
        yield fleet.problem(MODULE_VALUE, "cluster_endpoint", message)
    if fleet.text("ami_type") in {"", "AL2023"} and not fleet.text("service_cidr"):
        message = "cluster_endpoint needs service_cidr as well"
        yield fleet.problem(MODULE_VALUE, "cluster_endpoint", message)


def _alias(fleet: WrittenFleet) -> Iterator[Problem]:
    ami, ami_type = fleet.text("ami"), fleet.text("ami_type") or "AL2023"
    needed = "BOTTLEROCKET" if ami.startswith("bottlerocket") else "AL2023"
    if is_ami_alias(ami) and ami_type != needed:
        message = f"ami {ami} needs ami_type {needed}, not {ami_type}"
        yield fleet.problem(MODULE_VALUE, "ami", message)


def _parameter(fleet: WrittenFleet) -> Iterator[Problem]:
    """Refuse an image by parameter where EC2 resolves none.

    Source: RequestLaunchTemplateData.ImageId of the EC2 API: EC2 Fleets of type instant only. Ours
    are of type maintain. Auto Scaling groups resolve it at each launch.
    """
    if not fleet.fleet.is_group and fleet.text("ami").startswith(IMAGE_PARAMETER):
        message = (
            f"ami {IMAGE_PARAMETER}… is for Auto Scaling groups only: EC2 launches no node of an"
            " EC2 Fleet from it; name an image id or an alias such as al2023@latest"
        )
        yield fleet.problem(MODULE_VALUE, "ami", message)


def _selected_by_tags(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check that tags select subnets and security groups instead of ids, not in addition."""
    instead = {
        "subnet_tags": {
            "private_subnet_ids": bool(fleet.value("private_subnet_ids")),
            "overrides": fleet.value("overrides") is not None,
        },
        "security_group_tags": {
            "security_group_id": bool(fleet.text("security_group_id")),
            "security_group_ids": fleet.value("security_group_ids") is not None,
            "network_interfaces": bool(fleet.value("network_interfaces")),
        },
    }
    for key, others in instead.items():
        for other in (name for name, given in others.items() if given and fleet.value(key)):
            message = f"{key} and {other} exclude each other; give one of them"
            yield fleet.problem(MODULE_VALUE, key, message)


def _spot_price(fleet: WrittenFleet) -> Iterator[Problem]:
    """Refuse a spot price limit that an on-demand fleet itself states."""
    own = fleet.fleet.entry.terraform
    for key in OF_SPOT:
        if not fleet.fleet.entry.spot and own is not None and getattr(own, key):
            message = f"{key} is for spot nodes; with spot: false it must be left out"
            yield fleet.problem(MODULE_VALUE, key, message)


def _overrides(fleet: WrittenFleet) -> Iterator[Problem]:
    if fleet.value("overrides") is not None or fleet.fleet.is_group:
        return
    types = len(fleet.fleet.instance_types)
    subnets = len(fleet.value("private_subnet_ids") or ())
    subnets = min(subnets, 1) if fleet.fleet.entry.zone else subnets
    if types * subnets > OVERRIDES_MAX:
        message = (
            f"{types} instance types in {subnets} subnets are {types * subnets} overrides, EC2"
            f" takes {OVERRIDES_MAX} for one fleet"
        )
        yield fleet.document.problem(MODULE_LIMIT, fleet.node.location, message)


def _user_data(fleet: WrittenFleet) -> Iterator[Problem]:
    size = user_data_bytes(fleet.fleet)
    if size > USER_DATA_BYTES_MAX:
        message = (
            f"the user data of its nodes has {size} bytes, EC2 takes {USER_DATA_BYTES_MAX}: fewer"
            " or shorter labels and taints"
        )
        yield fleet.document.problem(MODULE_LIMIT, fleet.node.location, message)


_RULES: Final[tuple[Callable[[WrittenFleet], Iterator[Problem]], ...]] = (
    _volume,
    _alias,
    _parameter,
    _selected_by_tags,
    _bootstrap,
    _spot_price,
    _overrides,
    _user_data,
    overrides_fit,
    subnets_differ,
    fleet_tags_fit,
    tags_name_no_other_cluster,
    template_fits,
    *GROUP_RULES,
)

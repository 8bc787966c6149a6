"""The variables of eks_fleet and eks_group that a config may set: for all, a sector or a fleet.

Those that name a fleet (cluster_name, sector_label, node_pool_size, node_pool_kind, zone, spot,
lifecycle_in_name, initial_node_count, instance_types, group_name, max_size, node_resources) are not
here: they come from the fleet's own keys.
"""

import ipaddress
import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.faults import quoted, wrong_type
from reconciler.config.launch_template import (
    CpuCredits,
    Description,
    GroupTag,
    InstanceProfileArn,
    MetadataOptions,
    NetworkInterface,
    OneLine,
    Override,
    Placement,
    SecurityGroupId,
    ShutdownBehavior,
    SubnetId,
    TagSpecification,
    TemplateInstanceType,
    TemplateName,
    TemplateVersion,
    Volume,
)
from reconciler.config.types import (
    Boolean,
    Count,
    EbsIops,
    EbsSize,
    EbsThroughput,
    IntegerTo64,
    IntegerTo99,
    Labels,
    MaxPods,
    Name,
    PositivePrice,
    Region,
    Tags,
    TaintEffect,
    Text,
    Url,
    matching,
    text_like,
)
from reconciler.model.ids import REGION_FORM


class Taint(Section):
    """A taint as a Kubernetes object."""

    key: Text
    """`[prefix/]name`."""
    value: Name = ""
    """A label value; may be empty."""
    effect: TaintEffect
    """NoSchedule, PreferNoSchedule or NoExecute."""


def taints_in(text: str) -> list[dict[str, str]]:
    """Parse taints in kubelet's notation, `key=value:effect,…` (Kluster Fleet Manager)."""
    taints = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        label, colon, effect = part.rpartition(":")
        if not colon:
            raise wrong_type(f"must be taints such as key=value:NoSchedule, not {quoted(part)}")
        key, _, taint_value = label.partition("=")
        taints.append({"key": key, "value": taint_value, "effect": effect})
    return taints


def _taints_from_text(value: object) -> object:
    """Parse a text; leave everything else to the validation of objects."""
    return taints_in(value) if isinstance(value, str) else value


Taints: TypeAlias = tuple[Taint, ...]
TaintsOrText: TypeAlias = Annotated[Taints, BeforeValidator(_taints_from_text)]
AllocationStrategy: TypeAlias = Annotated[
    Literal["price-capacity-optimized", "capacity-optimized", "diversified", "lowestPrice"],
    BeforeValidator(scalars.any_text),
]


AmiType: TypeAlias = Annotated[
    Literal["AL2023", "BOTTLEROCKET", "AL2"], BeforeValidator(scalars.any_text)
]
Ami: TypeAlias = Annotated[
    Text,
    text_like(
        r"ami-[0-9a-z]+|resolve:ssm:[A-Za-z0-9/_.:-]+"
        r"|(al2023(-nvidia|-neuron)?|bottlerocket(-nvidia)?)@(latest|v[0-9]+(\.[0-9]+)*)",
        "an image id (ami-…), an alias such as al2023@latest or bottlerocket@v1.26.1, or"
        " resolve:ssm:<parameter> for Auto Scaling groups",
    ),
]
Architecture: TypeAlias = Annotated[Literal["x86_64", "arm64"], BeforeValidator(scalars.any_text)]
KubernetesVersion: TypeAlias = Annotated[
    Name, text_like(r"(1\.[0-9]{1,3})?", "a version of Kubernetes such as 1.35")
]
EbsType: TypeAlias = Annotated[
    Literal["gp3", "gp2", "io1", "io2"], BeforeValidator(scalars.any_text)
]


_RESERVED_KEYS: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_EVICTION_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|[KMGT]i?)?", re.ASCII)
_THRESHOLD: Final = re.compile(r"[0-9]+(\.[0-9]+)?(%|m|k|[KMGT]i?)?", re.ASCII)


def _is_cidr(text: str) -> bool:
    """Return whether a text is an address range; host bits may be set."""
    address, slash, bits = text.partition("/")
    if not (slash and bits.isascii() and bits.isdigit() and "%" not in address):
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _amounts(keys: tuple[str, ...], form: re.Pattern[str], example: str) -> AfterValidator:
    """Check known keys with values of a form, as the kubelet reads them."""

    def check(amounts: dict[str, str]) -> dict[str, str]:
        for key, value in amounts.items():
            if key not in keys:
                raise wrong_type(f"has the key {quoted(key)}; it takes {', '.join(keys)}")
            if form.fullmatch(value) is None:
                raise wrong_type(f"{key} must be {example}, not {quoted(value)}")
        return amounts

    return AfterValidator(check)


KubeletAmounts: TypeAlias = Annotated[
    dict[str, Name], _amounts(_RESERVED_KEYS, _AMOUNT, "a quantity such as 100m or 1Gi")
]
EvictionThresholds: TypeAlias = Annotated[
    dict[str, Name], _amounts(_EVICTION_SIGNALS, _THRESHOLD, "a quantity or percentage")
]
HttpsUrl: TypeAlias = Annotated[
    Name, text_like(r"(https://[^\s\"'\\]+)?", "an https:// URL without spaces or quotes")
]
Base64: TypeAlias = Annotated[
    Name,
    text_like(r"[A-Za-z0-9+/]*=*", "base64, as `aws eks describe-cluster` prints it"),
]
Cidr: TypeAlias = Annotated[
    Name,
    matching(lambda text: not text or _is_cidr(text), "an address range such as 10.100.0.0/16"),
]
KmsKeyArn: TypeAlias = Annotated[
    Name,
    text_like(
        rf"(arn:aws(-[a-z]+)*:kms:{REGION_FORM}:\d{{12}}:(key|alias)/.+)?",
        "the ARN of a KMS key or alias (arn:aws:kms:REGION:ACCOUNT:key/…)",
    ),
]
_KEY_ID: Final = (
    r"mrk-[a-f0-9]{32}|[a-f0-9]{8}-[a-f0-9]{4}-[1-5][a-f0-9]{3}-[ab89][a-f0-9]{3}-[a-f0-9]{12}"
)
_KEY_ALIAS: Final = r"alias/[a-zA-Z0-9/_-]+"
StateKmsKey: TypeAlias = Annotated[
    Name,
    text_like(
        rf"({_KEY_ID}|{_KEY_ALIAS}|arn:aws(-[a-z]+)*:kms:[a-z0-9-]+:\d{{12}}:"
        rf"(key/({_KEY_ID})|{_KEY_ALIAS}))?",
        "the ARN or id of a KMS key, or alias/NAME, as Terraform's backend takes them",
    ),
]


IMAGE_PARAMETER: Final = "resolve:ssm:"
"""How an image begins that a parameter of Systems Manager names."""


def is_ami_alias(ami: str) -> bool:
    """Return whether an image is named by family and version (`al2023@latest`), not by an id."""
    return "@" in ami


class TerraformVariables(Section):
    """Variables of the modules; a fleet's win over its sector's, those over the top's."""

    ami: Ami | None = None
    """Id of the machine image; an alias such as `al2023@latest` or `bottlerocket@v1.26.1`, which
    each plan of Terraform looks up; or, for Auto Scaling groups, `resolve:ssm:<parameter>`, which
    is looked up at each launch."""
    architecture: Architecture | None = None
    """Architecture of the image that an alias names: x86_64 (default) or arm64."""
    kubernetes_version: KubernetesVersion | None = None
    """Kubernetes version of the image that an alias names; default: the cluster's."""
    ami_type: AmiType | None = None
    """How the image is configured at boot: AL2023 (default), BOTTLEROCKET or AL2."""
    security_group_id: SecurityGroupId | None = None
    """Security group of the nodes."""
    security_group_tags: Tags | None = None
    """Tags of the security groups of the nodes, instead of `security_group_id`: every group that
    has all of them; `*` stands for any value."""
    private_subnet_ids: dict[str, SubnetId] | None = None
    """Subnets to launch into: availability zone to subnet id."""
    subnet_tags: Tags | None = None
    """Tags of the subnets to launch into, instead of `private_subnet_ids`: all of them on one
    subnet of each zone; `*` stands for any value."""
    ssh_key_name: Name | None = None
    """EC2 key pair for SSH; empty: none."""
    instance_profile_name: Name | None = None
    """IAM instance profile of the nodes."""
    metadata_hop_limit: IntegerTo64 | None = None
    """Network hops an instance metadata answer may travel, 1 to 64 (1)."""
    ebs_size: EbsSize | None = None
    """Size of a node's volume in GiB (50)."""
    ebs_type: EbsType | None = None
    """Type of a node's volume (gp3)."""
    ebs_iops: EbsIops | None = None
    """Provisioned operations per second of the volume."""
    ebs_throughput: EbsThroughput | None = None
    """Provisioned throughput of a gp3 volume in MiB/s."""
    ebs_encrypted: Boolean | None = None
    """Whether the volume is encrypted (true)."""
    ebs_kms_key_id: KmsKeyArn | None = None
    """ARN of the KMS key for the volume; empty: the account's default key."""
    max_price: PositivePrice | None = None
    """Most to pay for one spot node, USD per hour; default: the on-demand price."""
    spot_allocation_strategy: AllocationStrategy | None = None
    """How EC2 chooses among spot pools (price-capacity-optimized)."""
    cluster_endpoint: HttpsUrl | None = None
    """URL of the cluster's API server, so that nodes need not ask EKS at boot."""
    cluster_ca: Base64 | None = None
    """Certificate authority of the API server, base64."""
    service_cidr: Cidr | None = None
    """Address range of the cluster's Services."""
    max_pods: MaxPods | None = None
    """Most pods on a node; 0: what the image computes."""
    kube_reserved: KubeletAmounts | None = None
    """Resources kept for Kubernetes' own daemons."""
    system_reserved: KubeletAmounts | None = None
    """Resources kept for the operating system."""
    eviction_hard: EvictionThresholds | None = None
    """Hard eviction thresholds of the kubelet."""
    node_labels: Labels | None = None
    """Labels of your own for the nodes; `labels` of sector and fleet are added."""
    node_taints: TaintsOrText | None = None
    """Taints of your own for the nodes, as objects or `key=value:effect,…`."""
    on_demand_prefer_no_schedule_taint: Boolean | None = None
    """Whether on-demand nodes register with lifecycle=OnDemand:PreferNoSchedule (false)."""
    tags: Tags | None = None
    """Tags of your own; the three levels are merged and count together."""
    max_prices: dict[str, PositivePrice] | None = None
    """Most to pay for one spot node of an instance type, USD per hour; others have `max_price`."""
    overrides: tuple[Override, ...] | None = None
    """The fleet's overrides in their order, instead of one for each instance type and subnet."""
    fleet_tags: Tags | None = None
    """All tags of the fleet itself, instead of `tags` and the module's own."""
    launch_template_name: TemplateName | None = None
    """Name of the launch template (`<cluster>-<fleet>`)."""
    launch_template_by_name: Boolean | None = None
    """Whether the fleet refers to its launch template by name instead of id (false)."""
    launch_template_version: TemplateVersion | None = None
    """Version that the fleet launches from: $Latest (default), $Default or a number."""
    launch_template_description: Description | None = None
    """Description of the launch template's versions; empty: none."""
    launch_template_tags: Tags | None = None
    """All tags of the launch template, instead of `tags` and the module's own."""
    launch_template_instance_type: TemplateInstanceType | None = None
    """Instance type that the launch template names; empty: none."""
    tag_specifications: tuple[TagSpecification, ...] | None = None
    """What a launch gives tags; default: instances and volumes, `tags` and the module's own."""
    instance_profile_arn: InstanceProfileArn | None = None
    """ARN of the IAM instance profile, instead of `instance_profile_name`; empty: that one."""
    security_group_ids: tuple[SecurityGroupId, ...] | None = None
    """Security groups where they are several or none, instead of `security_group_id`."""
    network_interfaces: tuple[NetworkInterface, ...] | None = None
    """Network interfaces; they name the security groups."""
    volumes: tuple[Volume, ...] | None = None
    """Volumes, instead of the one that the `ebs_` keys describe; empty: the image's own."""
    metadata_options: MetadataOptions | None = None
    """Instance metadata options, instead of IMDSv2 required and `metadata_hop_limit`."""
    monitoring: Boolean | None = None
    """Whether instances have detailed monitoring."""
    ebs_optimized: Boolean | None = None
    """Whether instances are EBS-optimized; default: the instance type's."""
    cpu_credits: CpuCredits | None = None
    """CPU credits of burstable instance types: standard or unlimited."""
    instance_initiated_shutdown_behavior: ShutdownBehavior | None = None
    """What EC2 does when an instance shuts itself down: stop or terminate."""
    placement: Placement | None = None
    """Placement group, tenancy, host or zone of instances."""
    user_data: Name | None = None
    """User data in plain text, given to instances as it is; labels, taints and kubelet settings
    of the config then do not reach them. No secrets: it is readable here and in the state."""
    bootstrap_arguments: OneLine | None = None
    """More arguments of /etc/eks/bootstrap.sh, with `ami_type: AL2`."""
    mixed_instances_policy: Boolean | None = None
    """Auto Scaling groups: whether the group has one, with its instance types and spot or
    on-demand (true); without it launches what `launch_template_instance_type` names."""
    on_demand_base_capacity: Count | None = None
    """Auto Scaling groups: nodes that are on-demand before any spot instance is launched (0)."""
    on_demand_percentage_above_base_capacity: IntegerTo99 | None = None
    """Auto Scaling groups: percentage of on-demand instances above that number (0)."""
    group_tags: tuple[GroupTag, ...] | None = None
    """Auto Scaling groups: all tags of the group itself, instead of `tags`, the module's own and
    those that describe a node."""


_KEY_BYTES_MAX: Final = 1000
"""S3 takes 1,024 bytes; `.tflock` and the name of a further region have to fit in as well."""


def _is_object_key(key: str) -> bool:
    """Return whether Terraform's S3 backend takes the key, and S3 clients leave it as it is."""
    return (
        key.isprintable()
        and key.strip() != ""
        and not {"", ".", ".."} & set(key.split("/"))
        and len(key.encode()) <= _KEY_BYTES_MAX
    )


BucketName: TypeAlias = Annotated[
    Text,
    # Buckets from before March 2018 may have upper case, `_` and more than 63 characters.
    text_like(
        r"[A-Za-z0-9._-]{3,255}",
        "the name of an S3 bucket: 3 letters, digits, '.', '-' and '_' or more",
    ),
]
ObjectKey: TypeAlias = Annotated[
    Text,
    matching(
        _is_object_key,
        "the key of an S3 object such as clusters/a.tfstate: at most 1,000 bytes, without '/' at"
        " its ends, '//', or '.' and '..' as folders",
    ),
]


class Backend(Section):
    """An S3 backend for the rendered root module."""

    bucket: BucketName
    """Bucket of the state."""
    key: ObjectKey
    """Object key of the state; a further region's has the region at the end of its name."""
    region: Region
    """Region of the bucket."""
    use_lockfile: Boolean = True
    """Whether S3 itself keeps the lock."""
    encrypt: Boolean = True
    """Whether the state is encrypted at rest."""
    kms_key_id: StateKmsKey | None = None
    """KMS key of that encryption: its ARN, its id or alias/NAME; none: the bucket's."""
    endpoint: Url | None = None
    """Another S3 endpoint than AWS's."""


class Terraform(TerraformVariables):
    """What the second loop renders: module variables for all fleets, and the backend."""

    by_region: dict[Region, TerraformVariables] = Field(default_factory=dict)
    """Variables of fleets in a region, instead of those above: images, subnets, security groups.
    Each region that fleets are in beside the home region needs them; it is a root of its own."""
    backend: Backend | None = None
    """S3 backend of the rendered root; none: the root declares no backend."""

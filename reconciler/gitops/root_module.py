"""What a rendered root module says, as a value; and how it follows from a sector config."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from reconciler.config.base import Section
from reconciler.config.resolve import home_region_of
from reconciler.config.schema import FleetEntry, SectorConfig, SectorEntry
from reconciler.config.terraform import Backend, Taint, TerraformVariables
from reconciler.model.errors import UsageError

MERGED_VARIABLES = ("tags", "node_labels")
"""Variables whose entries of top level, sector and fleet add up; of others the nearest holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Backend:
    """Where the root module keeps its state. Credentials come from the environment only."""

    bucket: str
    key: str
    region: str
    use_lockfile: bool = True
    """Whether S3 itself keeps the lock; needs Terraform 1.10."""
    encrypt: bool = True
    kms_key_id: str | None = None
    """KMS key of the encryption; None: the bucket's."""
    endpoint: str | None = None
    """Another S3 endpoint than AWS's; buckets are then part of the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootModule:
    """A Terraform root module for the fleets of one cluster in one Region."""

    cluster_name: str
    fleets: Mapping[str, Mapping[str, Any]]
    """Variables of the eks_fleet module by fleet name, as JSON values, without cluster_name."""
    region: str | None = None
    """Region of the provider; None: that of the AWS environment."""
    backend: S3Backend | None = None
    """None: no backend is declared, and the state is where `terraform init` is told."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Fleets of the config that are not rendered, with the reason."""


def root_module_of(config: SectorConfig, *, cluster_name: str | None = None) -> RootModule:
    """The root module of a sector config's home Region.

    Args:
        config: A valid config; rules of `reconciler validate` are not checked again.
        cluster_name: Name for a config that has none, and instead of the one it has.

    Raises:
        UsageError: Neither the config nor the caller names the cluster.
    """
    name = cluster_name or config.cluster
    if not name:
        raise UsageError("cluster", "the config names no cluster", "give --cluster-name")
    fleets: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    for sector_name, sector in config.sectors.items():
        for fleet in sector.fleets:
            fleet_name = "-".join(filter(None, (sector_name, fleet.size, fleet.zone)))
            reason = _why_left_out(config, sector, fleet)
            if reason:
                left_out[fleet_name] = reason
            else:
                fleets[fleet_name] = _variables(config, sector_name, sector, fleet)
    return RootModule(
        cluster_name=name,
        fleets=fleets,
        region=home_region_of(config),
        backend=_backend(config.terraform.backend),
        left_out=left_out,
    )


def _why_left_out(config: SectorConfig, sector: SectorEntry, fleet: FleetEntry) -> str | None:
    """Return why a fleet is not in the root module of the home Region; None when it is."""
    if fleet.provider == "asg":
        return "an Auto Scaling group is not made here"
    if not fleet.managed:
        return "managed: false leaves it to whoever made it"
    regions = fleet.regions or sector.regions
    if regions and config.regions and config.regions[0] not in regions:
        return f"not in the home Region {config.regions[0]}"
    return None


def _variables(
    config: SectorConfig, sector_name: str, sector: SectorEntry, fleet: FleetEntry
) -> dict[str, Any]:
    """The variables of one fleet; what is not stated is left to the module's defaults."""
    variables = _merged(config.terraform, sector.terraform, fleet.terraform)
    taints = variables.pop("node_taints", ())
    if not fleet.spot:
        # Limits for all fleets are meant for those on spot; the module refuses them for others.
        for key in ("max_price", "max_prices"):
            if not (fleet.terraform and getattr(fleet.terraform, key)):
                variables.pop(key, None)
    own = {
        "instance_types": _instance_types(config, fleet),
        "node_labels": {**variables.get("node_labels", {}), **sector.labels, **fleet.labels},
        "node_taints": _taints((*taints, *sector.taints, *fleet.taints)),
        "zone": fleet.zone,
    }
    first_target = fleet.initial_node_count
    return {
        **variables,
        **{key: value for key, value in own.items() if value},
        "sector_label": sector_name,
        "node_pool_size": fleet.size,
        "node_pool_kind": sector.kind,
        "spot": fleet.spot,
        "initial_node_count": fleet.min_capacity if first_target is None else first_target,
    }


def _merged(*levels: TerraformVariables | None) -> dict[str, Any]:
    """Module variables stated at the levels, the nearest (last) first in force."""
    merged: dict[str, Any] = {}
    for level in filter(None, levels):
        for key, value in level.given().items():
            if key == "backend" or value is None:
                continue
            merged[key] = {**merged.get(key, {}), **value} if key in MERGED_VARIABLES else value
    return {key: v if key == "node_taints" else _as_json(v) for key, v in merged.items()}


def _as_json(value: Any) -> Any:
    """A typed value as JSON has it, without the keys that a section does not state."""
    if isinstance(value, Section):
        return {k: _as_json(v) for k, v in value.given().items() if v is not None}
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_as_json(each) for each in value]
    # Prices are strings, as EC2 takes them: a float would not be the number that was written.
    return f"{value:f}" if isinstance(value, Decimal) else value


def _instance_types(config: SectorConfig, fleet: FleetEntry) -> list[str]:
    """The fleet's own types, else its own size's; none: the module knows the built-in size."""
    if fleet.instance_types:
        return list(fleet.instance_types)
    own_size = config.sizes.get(fleet.size)
    return list(own_size.instance_types) if own_size else []


def _taints(taints: tuple[Taint, ...]) -> list[dict[str, str]]:
    """Taints as Kubernetes objects; of two with one key and effect the nearer (last) holds."""
    by_identity = {(taint.key, taint.effect): taint for taint in taints}
    return [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in by_identity.values()
    ]


def _backend(backend: Backend | None) -> S3Backend | None:
    """The backend that the config asks for."""
    if backend is None:
        return None
    return S3Backend(
        bucket=backend.bucket,
        key=backend.key,
        region=backend.region,
        use_lockfile=backend.use_lockfile,
        encrypt=backend.encrypt,
        kms_key_id=backend.kms_key_id or None,
        endpoint=backend.endpoint or None,
    )

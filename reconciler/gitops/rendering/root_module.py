"""The content of a rendered root module as a value, and how it follows from a sector config."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from reconciler.config.base import Section
from reconciler.config.fleets import FleetEntry
from reconciler.config.resolve import (
    OF_SPOT,
    ResolvedFleet,
    further_regions_of,
    home_region_of,
    resolve_fleets,
)
from reconciler.config.schema import SectorConfig
from reconciler.config.terraform import Backend, Taint
from reconciler.gitops.rendering.targets import directory_of
from reconciler.model.errors import UsageError
from reconciler.model.fleet import GROUP_SIZE_MAX_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Backend:
    """Says where the root module keeps its state. Credentials come from the environment only."""

    bucket: str
    key: str
    region: str
    use_lockfile: bool = True
    """Whether S3 itself holds the lock; needs Terraform 1.10."""
    encrypt: bool = True
    kms_key_id: str | None = None
    """KMS key of the encryption; None: the bucket's."""
    endpoint: str | None = None
    """An S3 endpoint other than AWS's; buckets are then part of the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootModule:
    """Describes the Terraform root module for the fleets of one cluster in one Region."""

    cluster_name: str
    fleets: Mapping[str, Mapping[str, Any]]
    """Variables of eks_fleet by fleet name, as JSON values, without cluster_name; of eks_group for
    those with an `auto_scaling_group`."""
    region: str | None = None
    """Region of the provider; None: that of the AWS environment."""
    backend: S3Backend | None = None
    """None: no backend is declared, and the state is where `terraform init` was asked to put it."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Fleets of the config that are not rendered, with the reason."""


def root_module_of(
    config: SectorConfig, *, cluster_name: str | None = None, region: str | None = None
) -> RootModule:
    """Return the root module of one Region of a sector config.

    Args:
        config: A valid config; the rules of `reconciler validate` are not checked again.
        cluster_name: Name that replaces the config's, or that it lacks.
        region: A further Region; None: the home Region. The root of a Region without fleets is
            empty.

    Raises:
        UsageError: Neither the config nor the caller names the cluster.
    """
    name = cluster_name or config.cluster
    if not name:
        raise UsageError("cluster", "the config names no cluster", "give --cluster-name")
    home = home_region_of(config)
    at_home = region is None or region == home
    here = home if at_home else region
    every = resolve_fleets(config)
    return RootModule(
        cluster_name=name,
        fleets={
            fleet.name: _variables(fleet.in_region(here))
            for fleet in every
            if fleet.is_rendered
            and (here in fleet.rendered_regions or (at_home and None in fleet.rendered_regions))
        },
        region=here,
        backend=_backend(config.terraform.backend, None if at_home else region),
        left_out={
            fleet.name: "managed: false leaves it to whoever made it"
            for fleet in every
            if at_home and not fleet.is_rendered
        },
    )


def check_home_region(
    config: SectorConfig, directory: str, *, rendered_for: str | None, further: Collection[str]
) -> None:
    """Refuse another home Region than the one that the directory, and so its state, is of.

    Args:
        config: A valid config.
        directory: That of the home Region's root module.
        rendered_for: The Region that it was rendered for; None: no Region, or never.
        further: Further Regions that have a root module already.

    Raises:
        UsageError: Two root modules would make the fleets of one Region, and each would have half
            of them in its state; what to do about it is in the hint.
    """
    home = home_region_of(config)
    beside = directory_of(directory, home) if home in further else ""
    if home is not None and rendered_for not in {None, home}:
        alone = f"no fleet of {rendered_for}" + (
            f", and that of {beside} none at all" * bool(beside)
        )
        raise UsageError(
            "regions",
            f"{home} is the home region now, and {directory} was rendered for {rendered_for}",
            f"name {rendered_for} first again; or, if the state of {directory} has {alone},"
            f" remove {' and '.join(filter(None, (directory, beside)))}: what is needed is rendered"
            " again",
        )
    if beside:
        raise UsageError(
            "regions",
            f"{home} is the home region now, and has a root module as a further region already:"
            " two would make its fleets",
            f"name the regions in their old order; or, if the state of {beside} has no fleet,"
            f" remove {beside}",
        )


def root_modules_of(
    config: SectorConfig, *, cluster_name: str | None = None, also: Iterable[str] = ()
) -> Mapping[str | None, RootModule]:
    """Return the root modules by Region; None is the home Region and comes first.

    Args:
        config: See `root_module_of`.
        cluster_name: See `root_module_of`.
        also: Further Regions that had a root before: an empty root removes the fleets.

    Raises:
        UsageError: Neither the config nor the caller names the cluster.
    """
    further = sorted({*further_regions_of(config), *also})
    return {
        region: root_module_of(config, cluster_name=cluster_name, region=region)
        for region in (None, *further)
    }


def _variables(fleet: ResolvedFleet) -> dict[str, Any]:
    """Return the variables of one fleet; what is not stated is left to the module's defaults.

    `min_capacity` is kept in one Region only, so in others the first target is 0.
    """
    sector, entry, stated = fleet.sector, fleet.entry, dict(fleet.terraform)
    taints = stated.pop("node_taints", ())
    if not entry.spot:
        # Spot settings for all fleets are meant for those on spot; the modules refuse them for
        # others.
        for key in OF_SPOT:
            if not (entry.terraform and getattr(entry.terraform, key)):
                stated.pop(key, None)
    variables = {key: _as_json(value) for key, value in stated.items()}
    own = {
        "instance_types": _instance_types(fleet.config, entry),
        "node_labels": {**variables.get("node_labels", {}), **sector.labels, **entry.labels},
        "node_taints": _taints((*taints, *sector.taints, *entry.taints)),
        "zone": entry.zone,
        "lifecycle_in_name": entry.lifecycle is not None,
    }
    return {
        **variables,
        **{key: value for key, value in own.items() if value},
        **(_of_group(fleet) if fleet.is_group else {}),
        "sector_label": fleet.sector_name,
        "node_pool_size": entry.size,
        "node_pool_kind": sector.kind,
        "spot": entry.spot,
        "initial_node_count": (
            fleet.initial_node_count
            if fleet.region == fleet.minimum_region
            else entry.initial_node_count or 0
        ),
    }


def _of_group(fleet: ResolvedFleet) -> dict[str, Any]:
    """Return what only an Auto Scaling group has, from the fleet's own keys."""
    most, size = fleet.entry.max_capacity, fleet.own_size
    if most is None and fleet.initial_node_count > GROUP_SIZE_MAX_DEFAULT:
        most = fleet.initial_node_count
    extended = {key: str(amount) for key, amount in size.extended.items()} if size else {}
    return {
        "auto_scaling_group": fleet.entry.auto_scaling_group,
        **({} if most is None else {"max_size": most}),
        **({"node_resources": extended} if extended else {}),
    }


def _as_json(value: Any) -> Any:
    """Return a typed value as JSON, without the keys that a section does not state."""
    if isinstance(value, Section):
        return {k: _as_json(v) for k, v in value.given().items() if v is not None}
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_as_json(each) for each in value]
    # Prices are strings, as in EC2's API: a float would change the number.
    return f"{value:f}" if isinstance(value, Decimal) else value


def _instance_types(config: SectorConfig, fleet: FleetEntry) -> list[str]:
    """Return the fleet's own types, else its own size's; none for a built-in size."""
    if fleet.instance_types:
        return list(fleet.instance_types)
    own_size = config.sizes.get(fleet.size)
    return list(own_size.instance_types) if own_size else []


def _taints(taints: tuple[Taint, ...]) -> list[dict[str, str]]:
    """Return taints as Kubernetes objects; the last one of a key and effect counts."""
    by_identity = {(taint.key, taint.effect): taint for taint in taints}
    return [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in by_identity.values()
    ]


def _backend(backend: Backend | None, region: str | None) -> S3Backend | None:
    """Return the backend in the config; a further Region's state has a key of its own."""
    if backend is None:
        return None
    return S3Backend(
        bucket=backend.bucket,
        key=backend.key if region is None else _key_in(region, backend.key),
        region=backend.region,
        use_lockfile=backend.use_lockfile,
        encrypt=backend.encrypt,
        kms_key_id=backend.kms_key_id or None,
        endpoint=backend.endpoint or None,
    )


def _key_in(region: str, key: str) -> str:
    """Return a further Region's key: `fleets.tfstate` becomes `fleets-us-east-1.tfstate`."""
    path = PurePosixPath(key)
    return str(path.with_name(f"{path.stem}-{region}{path.suffix}"))

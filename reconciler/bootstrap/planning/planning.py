"""Wires one planning cycle: from files, or from the live APIs."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.adapters.files import CloudFiles, FileCluster
from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.planning.home_region import offline_home_region
from reconciler.bootstrap.planning.providers import group_names, observed_clouds
from reconciler.config.catalogue import load_catalogue
from reconciler.config.environment import Flags, load_with_overrides
from reconciler.config.planning.settings import NO_SPOT_PRICES, SpotPrices, planner_settings
from reconciler.config.schema import SectorConfig
from reconciler.machine.garbage import garbage_collection_paused
from reconciler.model.errors import UsageError
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.observer.observe import observe
from reconciler.planner.explain.answers import Explanations
from reconciler.planner.explain.explain import explain
from reconciler.planner.fleets.departing import regions_to_observe
from reconciler.planner.plan_despite_failures import plan_for_all
from reconciler.planner.settings import PlannerSettings
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster
from reconciler.records.kubernetes import LEASE_NAMESPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Holds the options of `reconciler plan`."""

    config: str
    flags: Flags
    cluster_files: tuple[str, ...] = ()
    """Empty: the live API server."""
    aws_files: tuple[str, ...] = ()
    now: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Names the pods, nodes and fleets to explain."""

    pods: tuple[str, ...] = ()
    """Each as `namespace/name`."""
    nodes: tuple[str, ...] = ()
    fleets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSource:
    """Joins the live cluster and clouds of one config."""

    config: SectorConfig
    settings: PlannerSettings
    cluster: Cluster
    clouds: tuple[Cloud, ...]


def resolved(
    config: SectorConfig,
    home_region: str | None = None,
    spot_prices: SpotPrices = NO_SPOT_PRICES,
) -> PlannerSettings:
    """Return the planner's settings of a config; `home_region` is for one that names no regions."""
    catalogue = load_catalogue(config.catalogue)
    return planner_settings(config, catalogue, home_region=home_region, spot_prices=spot_prices)


def make_plan(request: PlanRequest) -> tuple[Plan, Snapshot, PlannerSettings]:
    """Run one planning cycle; nothing is changed.

    Raises:
        ConfigError: The config has faults.
        UsageError: Flags exclude each other, or there is no cluster name.
        InputError: A file cannot be read.
        PortError: A live API did not answer.
    """
    config = load_with_overrides(request.config, request.flags)
    if request.cluster_files:
        snapshot, settings = _from_files(request, config)
    else:
        if request.aws_files:
            raise UsageError("--aws", "needs --cluster", "give both, or neither for the live APIs")
        with live(config) as live_ports:
            settings = live_ports.settings
            cluster, clouds = live_ports.cluster, live_ports.clouds
            snapshot = observe(cluster, clouds, settings.observed_regions, SystemClock())
            regions = regions_to_observe(snapshot.cluster.nodes, settings)
            if regions != settings.observed_regions:
                snapshot = observe(cluster, clouds, regions, SystemClock())
    if request.now is not None:
        snapshot = at_another_time(snapshot, request.now)
    return plan_without_gc(snapshot, settings), snapshot, settings


def plan_without_gc(snapshot: Snapshot, settings: PlannerSettings) -> Plan:
    """Return the plan for all whose pods can be planned for.

    The cyclic garbage collector is paused: with thousands of kinds of pods it would walk the whole
    cluster several times.
    """
    with garbage_collection_paused():
        return plan_for_all(snapshot, settings)


def at_another_time(snapshot: Snapshot, at: datetime) -> Snapshot:
    """Return the snapshot with another time, without the clocks of servers, which differ."""
    cloud = snapshot.cloud
    return replace(
        snapshot,
        at=at,
        cluster=replace(snapshot.cluster, server_time=None),
        cloud=None if cloud is None else replace(cloud, server_time=None),
    )


def _from_files(request: PlanRequest, config: SectorConfig) -> tuple[Snapshot, PlannerSettings]:
    """Return what the files say, spot prices included."""
    cluster = FileCluster(
        request.cluster_files,
        lease_namespace=config.leader_election.namespace or LEASE_NAMESPACE,
    )
    files = CloudFiles(request.aws_files) if request.aws_files else None
    home = offline_home_region(config, cluster.nodes(), files)
    settings = resolved(config, home)
    cloud = None
    if files is not None:
        cloud = files.of_region(
            settings.home_region, cluster=settings.cluster, groups=group_names(settings)
        )
        if cloud.spot_prices():
            settings = resolved(config, home, cloud.spot_prices())
    return observe(
        cluster, [] if cloud is None else [cloud], settings.observed_regions, SystemClock()
    ), settings


def explained(
    made: Plan, snapshot: Snapshot, settings: PlannerSettings, questions: Questions
) -> Explanations:
    """Return the answers to questions about a plan.

    Raises:
        UsageError: There is no such pod, node or fleet.
    """
    return explain(
        snapshot,
        settings,
        made,
        pods=questions.pods,
        nodes=questions.nodes,
        fleets=questions.fleets,
    )


@contextmanager
def live(config: SectorConfig) -> Iterator[LiveSource]:
    """Yield the live API server and EC2; watches end with the block."""
    # boto3 and the Kubernetes client are slow to load, and offline planning needs neither.
    from reconciler.adapters.aws import home_region  # noqa: PLC0415 - as above
    from reconciler.adapters.kubernetes import (  # noqa: PLC0415
        KubernetesCluster,
        connect,
        lease_home,
    )
    from reconciler.bootstrap.planning.clouds import aws_clouds  # noqa: PLC0415 - as above

    settings = resolved(config, home_region())
    home = lease_home(config.leader_election.namespace, config.kubeconfig or config.kube_context)
    with (
        closing(
            KubernetesCluster(connect(config.kubeconfig, config.kube_context), lease_home=home)
        ) as cluster,
        aws_clouds(lambda: settings) as clouds,
    ):
        yield LiveSource(
            config=config,
            settings=settings,
            cluster=cluster,
            clouds=observed_clouds(clouds, settings),
        )

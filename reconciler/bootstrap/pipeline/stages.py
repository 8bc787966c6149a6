"""Wires the stages of `reconciler ci` to git, Terraform and EC2."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reconciler.adapters.files import FileCluster
from reconciler.adapters.git.checkout import GitCheckout
from reconciler.adapters.system_clock import SystemClock
from reconciler.adapters.terraform.cli import TerraformCli
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.bootstrap.planning.home_region import offline_home_region
from reconciler.config.catalogue import catalogue_beside, load_catalogue
from reconciler.config.loader import parse_config, read_config_bytes
from reconciler.config.planning.settings import planner_settings
from reconciler.gitops.applying.left_behind import clear_imports
from reconciler.gitops.pipeline import Pipeline, PipelineSettings
from reconciler.gitops.rendering.rendered_root import assert_rendered_root
from reconciler.gitops.rendering.write import rendered_cluster
from reconciler.gitops.repository.roots import cluster_in
from reconciler.gitops.terraform_plan.config_facts import ConfigFacts, config_facts
from reconciler.gitops.terraform_plan.directory import PlanDirectory
from reconciler.gitops.terraform_plan.planned import PlannedFleet
from reconciler.gitops.terraform_plan.pod_impact import PodImpact, pod_impacts
from reconciler.gitops.terraform_plan.pools import PoolEdit
from reconciler.gitops.terraform_plan.replay import Replay
from reconciler.gitops.terraform_plan.root_files import (
    allowed_files,
    assert_only_ours,
    further_region,
)
from reconciler.model.errors import ReconcilerError, UsageError
from reconciler.model.ids import Region
from reconciler.observer.observe import observe
from reconciler.ports.cloud import Cloud
from reconciler.records.kubernetes import LEASE_NAMESPACE
from reconciler.telemetry.logging import set_up_logging
from reconciler.telemetry.scrubbing import secrets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CiOptions:
    """Holds the options of `reconciler ci`."""

    directory: Path
    plan_directory: Path
    config: Path | None = None
    """The sector config; None: `sectors.yaml` next to the directory, when it is there."""
    needs_config: bool = True
    """False for stages that check nothing, and so must not fail for a faulty config."""
    backend_config: tuple[str, ...] = ()
    allow_types: tuple[str, ...] = ()
    allow_files: tuple[str, ...] = ()
    """`PATH` or `PATH=SHA256` of files in the directory that were not rendered and are allowed."""
    lock_timeout_seconds: int = 60
    allow_newer_commit: bool = False
    """Whether an apply may find the checkout at a newer commit that changed nothing of its root."""
    cluster_files: tuple[str, ...] = ()
    """Files with what kubectl prints of the cluster, to find what a plan means for its pods."""
    replay: str = ""
    """Recorded demand to simulate the config with, and the one before; empty: none."""
    replay_base: str = "HEAD^1"
    """The commit that has the config before the planned one."""


def pipeline(options: CiOptions) -> Pipeline:
    """Return the stages for one root module.

    Raises:
        InputError: The directory holds no rendered root module.
        ToolError: Terraform or the directory is missing.
        ConfigError: The sector config has faults.
    """
    allowed = allowed_files(options.allow_files)
    assert_rendered_root(options.directory, allowed=allowed)
    # Retries are reported on stderr: stdout is for the stage's result.
    set_up_logging(0, secrets_of(os.environ))  # noqa: TID251 - masked, not read
    terraform = TerraformCli(
        TerraformSettings(
            directory=options.directory, lock_timeout_seconds=options.lock_timeout_seconds
        )
    )
    facts, fault = _facts_or_fault(options)
    settings = PipelineSettings(
        module=options.directory,
        plans=PlanDirectory(options.plan_directory),
        backend_config=tuple(_backend_setting(each) for each in options.backend_config),
        facts=facts,
        config_fault=fault,
        allow_types=frozenset(options.allow_types),
        allow_files=allowed,
        impacts=impacts_on_pods(options),
        replay=_replay(options),
        untouched_since=partial(_untouched_since, options) if options.allow_newer_commit else None,
    )
    return Pipeline(terraform, _ec2, GitCheckout(), settings, _left_behind, _set_pools)


def _untouched_since(options: CiOptions, commit: str) -> bool:
    """Return whether root module and config are unchanged since a commit that is known here."""
    checkout, config = GitCheckout(), _config_file(options)
    beside = [(options.directory, None)] + ([(config.parent, config.name)] if config else [])
    for directory, name in beside:
        changed = checkout.changed_since(str(directory), commit)
        if changed is None or (changed if name is None else name in changed):
            return False
    return True


def impacts_on_pods(
    options: CiOptions,
) -> Callable[[Sequence[PlannedFleet]], tuple[PodImpact, ...]] | None:
    """Return what asks the planner about the pods of the cluster's files, None without files.

    Raises:
        UsageError: There is no sector config to plan with.
        InputError: A file cannot be read.
    """
    if not options.cluster_files:
        return None
    file = _config_file(options)
    if file is None:
        raise UsageError("--cluster", "there is no sector config", "name it with --config")
    content = read_config_bytes(file)
    config = parse_config(content, name=str(file), cluster_name=_cluster_name(options, content))
    catalogue = load_catalogue(catalogue_beside(config.catalogue, file.parent))
    cluster = FileCluster(
        options.cluster_files,
        lease_namespace=config.leader_election.namespace or LEASE_NAMESPACE,
    )
    home = offline_home_region(config, cluster.nodes())
    settings = planner_settings(config, catalogue, home_region=home)
    snapshot = observe(cluster, [], settings.observed_regions, SystemClock())
    return lambda planned: pod_impacts(planned, snapshot, settings)


def _replay(options: CiOptions) -> Callable[[], Replay] | None:
    """Return what simulates the recorded demand; None when there is none.

    Raises:
        UsageError: There is no sector config to simulate with.
    """
    if not options.replay:
        return None
    file = _config_file(options)
    if file is None:
        raise UsageError("--replay", "there is no sector config", "name it with --config")
    content = read_config_bytes(file)
    checkout, folder = GitCheckout(), str(file.parent)
    of_base = partial(checkout.content_at, folder, options.replay_base)
    before = of_base(file.name)
    missing = ""
    if before is None and not checkout.has_commit(folder, options.replay_base):
        missing = (
            f"the config before, because there is no commit {options.replay_base} here: name"
            " another one with --replay-base, or fetch more history"
        )

    def of_checkout(name: str) -> bytes | None:
        path = file.parent / name
        return read_config_bytes(path) if path.exists() else None

    def simulated() -> Replay:
        from reconciler.bootstrap.pipeline.replaying import (  # noqa: PLC0415 - numpy: slow
            ConfigOfCommit,
            replay,
        )

        earlier = (
            None
            if before is None
            else ConfigOfCommit(name=f"{file} before", content=before, beside=of_base)
        )
        return replay(
            options.replay,
            ConfigOfCommit(name=str(file), content=content, beside=of_checkout),
            earlier,
            cluster_name=_cluster_name(options, content),
            missing=missing,
        )

    return simulated


def _ec2(cluster: str, groups: Collection[str]) -> Cloud:
    # boto3 is slow to load, and most plans touch no live fleet.
    from reconciler.adapters.aws import AutoScalingCloud, Ec2FleetCloud  # noqa: PLC0415 - as above

    named = frozenset(groups)
    return AutoScalingCloud(cluster, lambda: named) if named else Ec2FleetCloud(cluster)


def _facts_or_fault(options: CiOptions) -> tuple[ConfigFacts, str]:
    try:
        return facts_of(options), ""
    except ReconcilerError as error:
        if options.needs_config:
            raise
        return ConfigFacts(), str(error)


def _left_behind(
    cluster: str, region: Region, names: Mapping[str, str], groups: Mapping[str, str]
) -> Mapping[str, Mapping[str, str]]:
    from reconciler.adapters.aws.left_behind import read_left_behind  # noqa: PLC0415 - as above

    return read_left_behind(cluster, region, names, groups)


def _set_pools(edit: PoolEdit) -> None:
    from reconciler.adapters.aws.pools import set_pools  # noqa: PLC0415 - as above

    set_pools(edit.region, edit.fleet_id, edit.configs, SystemClock().wait_seconds)


def unlock(
    directory: Path, backend_config: tuple[str, ...], lock_id: str, allow_files: tuple[str, ...]
) -> None:
    """Remove the lock of a run that died from the state of a root module.

    Raises:
        InputError: The directory holds no rendered root module.
        Refused: The root module has a file that was not rendered.
        ToolError: Terraform is missing, or there is no such lock.
    """
    allowed = allowed_files(allow_files)
    assert_rendered_root(directory, allowed=allowed)
    terraform = TerraformCli(TerraformSettings(directory=directory))
    clear_imports(directory)
    assert_only_ours(directory, allowed=allowed)
    terraform.init(tuple(_backend_setting(each) for each in backend_config))
    terraform.unlock(lock_id)


def facts_of(options: CiOptions) -> ConfigFacts:
    """Return what the config says; nothing when there is none next to the directory."""
    file = _config_file(options)
    if file is None:
        return ConfigFacts()
    content = read_config_bytes(file)
    return config_facts(
        content,
        name=str(file),
        cluster_name=_cluster_name(options, content),
        region=further_region(options.directory),
    )


def _config_file(options: CiOptions) -> Path | None:
    """Return the named config, else the one next to the directory when there is one."""
    beside = options.directory.resolve().parent / "sectors.yaml"
    return options.config or (beside if beside.is_file() else None)


def _cluster_name(options: CiOptions, config: bytes) -> str | None:
    """Return the cluster name that the render got as an option, for a config without a name."""
    return None if cluster_in(config) else rendered_cluster(options.directory)


def _backend_setting(value: str) -> str:
    """Return the setting; a file is relative to the caller's folder, not to the root module."""
    return value if "=" in value else str(Path(value).resolve())

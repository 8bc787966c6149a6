"""Wires the second loop and the pipeline stages to git, Terraform and EC2."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reconciler import __version__
from reconciler.adapters.files import FileCluster
from reconciler.adapters.git.checkout import GitCheckout
from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.adapters.system_clock import SystemClock, stop_on_signals
from reconciler.adapters.terraform.cli import TerraformCli
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.bootstrap.forge import ForgeChoice, forge_for
from reconciler.bootstrap.gitops_log import GitopsLog
from reconciler.bootstrap.stop_deadline import StopDeadline, exit_code_of, stop_seconds_of
from reconciler.config.catalogue import catalogue_beside, load_catalogue
from reconciler.config.loader import parse_config, read_config_bytes
from reconciler.config.planning.settings import planner_settings
from reconciler.config.rules.names import check_cluster_name
from reconciler.gitops.applying.left_behind import clear_imports
from reconciler.gitops.pipeline import Pipeline, PipelineSettings
from reconciler.gitops.rendering.rendered_root import assert_rendered_root
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT
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
from reconciler.loops.second_loop.gitops_loop import Fetched, GitopsLoop, GitopsSettings, Mode
from reconciler.model.errors import ReconcilerError, UsageError
from reconciler.model.ids import Region
from reconciler.observer.observe import observe
from reconciler.ports.cloud import Cloud
from reconciler.records.kubernetes import LEASE_NAMESPACE
from reconciler.telemetry.logging import set_up_logging
from reconciler.telemetry.scrubbing import secrets_of

TOKEN = "RECONCILER_GIT_TOKEN"  # noqa: S105 - a variable's name
TOKEN_FILE = "RECONCILER_GIT_TOKEN_FILE"  # noqa: S105 - a variable's name
USERNAME = "RECONCILER_GIT_USERNAME"
SIGNING_KEY_FILE = "RECONCILER_GIT_SIGNING_KEY_FILE"
AUTHOR_NAME = "RECONCILER_GIT_AUTHOR_NAME"
AUTHOR_EMAIL = "RECONCILER_GIT_AUTHOR_EMAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsOptions:
    """The options of `reconciler gitops` and `run --gitops`."""

    repository: str
    branch: str = "main"
    configs: tuple[str, ...] = ("sectors.yaml",)
    output: str = DEFAULT_OUTPUT
    clone: Path | None = None
    mode: Mode = "push"
    poll_seconds: float = 30.0
    cluster_name: str | None = None
    forge: ForgeChoice = "auto"
    forge_api: str = ""
    """Root of the REST API; empty: the usual one of the repository's host."""

    def __post_init__(self) -> None:
        """Refuse a cluster name that would make every config invalid."""
        if self.cluster_name is not None:
            check_cluster_name(self.cluster_name)


def check_options(options: GitopsOptions) -> None:
    """Refuse options with which the second loop could not start.

    Raises:
        UsageError: What is wrong.
    """
    _git_settings(options)
    forge_for(options.repository, options.forge, options.forge_api)


@contextmanager
def git_repository(options: GitopsOptions) -> Iterator[GitRepository]:
    """Yield the config repository; its local copy is released at the end."""
    repository = GitRepository(_git_settings(options))
    try:
        yield repository
    finally:
        repository.close()


def gitops_loop(
    options: GitopsOptions, repository: GitRepository, fetched: Fetched | None = None
) -> GitopsLoop:
    """Build the second loop over a real remote.

    Args:
        options: Its options.
        repository: Where its configs are.
        fetched: Called with each newest commit, whether the loop acts or not.
    """
    settings = GitopsSettings(
        version=__version__,
        branch=options.branch,
        configs=options.configs,
        output=options.output,
        cluster_name=options.cluster_name,
        mode=options.mode,
        poll_seconds=options.poll_seconds,
    )
    return GitopsLoop(
        repository,
        SystemClock(),
        settings,
        forge_for(options.repository, options.forge, options.forge_api),
        fetched,
    )


def watch_until_stopped(options: GitopsOptions, verbosity: int = 0) -> int:
    """Run the second loop until SIGTERM or SIGINT, logging what changes to stderr.

    It does not wait for a git command that hangs: the next start fetches its result.

    Returns:
        The exit code: 0; 130 after SIGINT.
    """
    set_up_logging(verbosity, secrets_of(os.environ))  # noqa: TID251 - masked, not read
    clock = SystemClock()
    deadline = StopDeadline(lambda: exit_code_of(stopped), lambda: stop_seconds_of(stopped))
    with git_repository(options) as repository:
        loop = gitops_loop(options, repository)
        with stop_on_signals(clock.stop, [loop.stop, deadline.arm]) as stopped:
            loop.watch(GitopsLog())
    deadline.disarm()
    return exit_code_of(stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class CiOptions:
    """The options of `reconciler ci`."""

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
        impacts=_impacts(options),
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


def _impacts(
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
    config = parse_config(content, name=str(file), cluster_name=_told_name(options, content))
    catalogue = load_catalogue(catalogue_beside(config.catalogue, file.parent))
    settings = planner_settings(config, catalogue)
    cluster = FileCluster(
        options.cluster_files,
        lease_namespace=config.leader_election.namespace or LEASE_NAMESPACE,
    )
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
    of_base = partial(GitCheckout().content_at, str(file.parent), options.replay_base)
    before = of_base(file.name)

    def of_checkout(name: str) -> bytes | None:
        path = file.parent / name
        return read_config_bytes(path) if path.exists() else None

    def simulated() -> Replay:
        from reconciler.bootstrap.replaying import (  # noqa: PLC0415 - numpy: slow
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
            cluster_name=_told_name(options, content),
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
    cluster: str, region: Region, names: Sequence[str], groups: Sequence[str]
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
        cluster_name=_told_name(options, content),
        region=further_region(options.directory),
    )


def _config_file(options: CiOptions) -> Path | None:
    """Return the named config, else the one next to the directory when there is one."""
    beside = options.directory.resolve().parent / "sectors.yaml"
    return options.config or (beside if beside.is_file() else None)


def _told_name(options: CiOptions, config: bytes) -> str | None:
    """Return the cluster name that the render got as an option, for a config without a name."""
    return None if cluster_in(config) else rendered_cluster(options.directory)


def _backend_setting(value: str) -> str:
    """Return the setting; a file is relative to the caller's folder, not to the root module."""
    return value if "=" in value else str(Path(value).resolve())


def _git_settings(options: GitopsOptions) -> GitSettings:
    users = os.environ  # noqa: TID251 - credentials and identity come from nowhere else
    file, key = users.get(TOKEN_FILE, ""), users.get(SIGNING_KEY_FILE, "")
    return GitSettings(
        url=options.repository,
        branch=options.branch,
        directory=options.clone,
        token=users.get(TOKEN, ""),
        token_file=Path(file) if file else None,
        signing_key_file=Path(key) if key else None,
        username=users.get(USERNAME, "x-access-token"),
        author_name=users.get(AUTHOR_NAME, "fleet-reconciler"),
        author_email=users.get(AUTHOR_EMAIL, "fleet-reconciler@localhost"),
    )

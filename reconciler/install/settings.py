"""The settings of an install, and how they follow from a sector config."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.config.resolve import resolve_fleets
from reconciler.config.rules.names import check_cluster_name
from reconciler.config.schema import SectorConfig
from reconciler.config.terraform import Taint
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT, find_targets
from reconciler.model.errors import UsageError
from reconciler.model.frozen import FrozenMap
from reconciler.records.git_address import (
    check_branch,
    check_git_address,
    check_token_is_hidden,
)

CONFIG_FILE: Final = "sectors.yaml"
CONFIG_MAP_BYTES_MAX: Final = 1 << 20
"""etcd does not store a larger object;
https://kubernetes.io/docs/concepts/configuration/configmap/."""
ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,512}")
BUCKET_SCHEME: Final = "s3://"
TOKEN_FILE: Final = "/etc/fleet-reconciler-token/listen-token"  # noqa: S105 - a path
"""Where the Deployment mounts the key `listen-token` of the Secret."""
NAMESPACE_MAX: Final = 63
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PRIORITY_CLASS: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    r"(?=.{1,512}\Z)"
    rf"(?:{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
"""The image names that container runtimes accept: host and port, a lower-case name, tag and
digest."""
_EXTRA_PART: Final = r"\.?[\w-]+(?:\.[\w-]+)*"
_EXTRA_NAME: Final = re.compile(rf"{_EXTRA_PART}(?:/{_EXTRA_PART})*", re.ASCII)
"""Paths of which no two have one key in a ConfigMap, where `..` stands for `/`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How the pods get AWS credentials."""

    kind: str
    """`irsa`, `pod-identity` or `none` (the node's own role)."""
    role_arn: str = ""

    @staticmethod
    def parsed(text: str) -> "Identity":
        """`irsa=ROLE_ARN`, `pod-identity`, `pod-identity=ROLE_ARN` or `none`.

        Raises:
            UsageError: The text is none of these.
        """
        kind, _, role = text.partition("=")
        wants_role = {"irsa": True, "pod-identity": bool(role), "none": False}.get(kind)
        if wants_role is None or (role and not wants_role):
            raise UsageError("--identity", f"{text!r} is not known", "irsa=ROLE_ARN, pod-identity")
        if wants_role and not ROLE.fullmatch(role):
            raise UsageError(
                "--identity",
                f"{role!r} is not a role",
                f"{kind}=arn:aws:iam::123456789012:role/NAME",
            )
        return Identity(kind=kind, role_arn=role)


NO_IDENTITY: Final = Identity(kind="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gitops:
    """The second loop in the same Deployment."""

    repository: str
    branch: str = "main"
    mode: str = "push"
    configs: tuple[str, ...] = ()
    """Paths or patterns of sector configs in it; none: sectors.yaml at its top."""
    output: str = DEFAULT_OUTPUT
    """The folder that is rendered next to each config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallSettings:
    """Everything that the manifest's templates are filled with."""

    cluster: str
    config: str
    """The sector config as it is written, with comments."""
    image: str
    namespace: str = "fleet-reconciler"
    identity: Identity = NO_IDENTITY
    sector: str | None = None
    """Where the pods run; None: on any node."""
    tolerations: tuple[Taint, ...] = ()
    replicas: int = 2
    elects: bool = True
    """Whether the config has the replicas elect the one that acts."""
    priority_class: str = "system-cluster-critical"
    gitops: Gitops | None = None
    node_watch: bool = False
    """Whether every spot node gets the node watch."""
    extra_files: Mapping[str, str] = field(default_factory=FrozenMap)
    """Files that the config names, by their relative path."""


def check(settings: InstallSettings, config: SectorConfig) -> None:
    """Refuse an install that would not run.

    Raises:
        UsageError: What is wrong and how to fix it.
    """
    check_cluster_name(settings.cluster)
    _check_namespace(settings)
    if not _IMAGE.fullmatch(settings.image):
        raise UsageError(
            "--image", f"{settings.image!r} is not a valid name of an image", "REGISTRY/NAME:TAG"
        )
    if settings.priority_class and not _PRIORITY_CLASS.fullmatch(settings.priority_class):
        raise UsageError(
            "--priority-class",
            f"{settings.priority_class!r} is not a valid name of a PriorityClass",
        )
    if settings.replicas < 1:
        raise UsageError("--replicas", "must be 1 or more")
    _check_config(settings, config)
    if settings.gitops is not None:
        _check_gitops(settings.gitops)
    texts = (settings.config, *settings.extra_files.values())
    size = sum(len(text.encode()) for text in texts)
    if size > CONFIG_MAP_BYTES_MAX:
        raise UsageError("config", f"is {size} bytes, a ConfigMap takes {CONFIG_MAP_BYTES_MAX}")


def _check_config(settings: InstallSettings, config: SectorConfig) -> None:
    """Check the keys with which the pods could not run; the Helm chart's checkConfig does too."""
    if settings.replicas > 1 and not config.leader_election.enabled:
        raise UsageError(
            "--replicas", "more than one needs leader_election.enabled", "two would both act"
        )
    if config.leader_election.namespace not in {None, settings.namespace}:
        raise UsageError(
            "leader_election.namespace",
            f"the pods may write Leases in {settings.namespace} alone",
            "take it out",
        )
    if config.notifications.slack_hook.get_secret_value():
        raise UsageError(
            "notifications.slack_hook",
            "a ConfigMap is not a place for a secret",
            "take it out; the Deployment reads the key slack-hook of the Secret fleet-reconciler",
        )
    if config.kubeconfig:
        raise UsageError("kubeconfig", "a pod has no such file", "take it out of the config")
    if config.kube_context:
        raise UsageError(
            "kube_context", "a pod has no kubeconfig with contexts", "take it out of the config"
        )
    if config.listen_token_file not in {None, TOKEN_FILE}:
        raise UsageError(
            "listen_token_file", "the pods have no such file", f"{TOKEN_FILE} is the Secret's"
        )
    if config.recording.path and not config.recording.path.startswith(BUCKET_SCHEME):
        raise UsageError(
            "recording.path", "the pods have no disk to record on", "name s3://BUCKET/PREFIX"
        )


def _check_gitops(gitops: Gitops) -> None:
    """Check what the program refuses at its start, with a token as the Deployment passes it."""
    parts = check_git_address(
        gitops.repository,
        "--repository",
        "take it out; the Deployment reads the key git-token of the Secret fleet-reconciler",
    )
    check_token_is_hidden(parts, "--repository")
    check_branch(gitops.branch, "--branch")
    for configs in (gitops.configs, (CONFIG_FILE,)):  # a pattern alone does not show the folder
        find_targets((), configs, gitops.output)


def _check_namespace(settings: InstallSettings) -> None:
    if not _NAMESPACE.fullmatch(settings.namespace):
        what = f"{settings.namespace!r} is not a valid name of a namespace"
        raise UsageError("--namespace", what)
    if settings.node_watch and len(settings.namespace) > NAMESPACE_MAX - len("-node-watch"):
        raise UsageError("--namespace", "is too long: --node-watch adds -node-watch to it")


def tolerations_of(config: SectorConfig, name: str | None) -> tuple[Taint, ...]:
    """Return what pods must tolerate to run in a sector.

    Raises:
        UsageError: There is no such sector, or it may have no node at times.
    """
    if name is None:
        return ()
    sector = config.sectors.get(name)
    if sector is None:
        known = ", ".join(sorted(config.sectors)) or "none"
        raise UsageError("--sector", f"the config has no sector {name!r}", f"it has: {known}")
    fleets = [fleet for fleet in resolve_fleets(config) if fleet.sector_name == name]
    standing = [fleet for fleet in fleets if fleet.entry.min_capacity > 0]
    if not standing:
        raise UsageError(
            "--sector",
            f"no fleet of {name} keeps a node: nothing would run what scales it up",
            "give one of its fleets min_capacity: 1",
        )
    return tuple(
        dict.fromkeys(
            taint
            for fleet in standing
            for region in fleet.rendered_regions
            for taint in fleet.in_region(region).taints
        )
    )


def extra_paths(config: SectorConfig) -> tuple[str, ...]:
    """Return the files that the config names and that are next to it, as relative paths.

    Raises:
        UsageError: One lies outside of the config's folder.
    """
    named = [path for path in (config.descheduler.policy_file, config.catalogue) if path]
    for path in named:
        if not _EXTRA_NAME.fullmatch(path) or path == CONFIG_FILE:
            raise UsageError(
                path, "cannot be put into a ConfigMap", "name a file in the config's own folder"
            )
    return tuple(dict.fromkeys(named))

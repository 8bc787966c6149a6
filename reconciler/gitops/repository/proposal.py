"""Makes the files that a directory should hold from a config's bytes; pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import orjson

from reconciler.config.document import read_document
from reconciler.config.loader import Purpose, parse_config
from reconciler.gitops.rendering.read_back import root_read
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import RootModule, check_home_region, root_modules_of
from reconciler.gitops.rendering.targets import (
    MANIFEST,
    RenderTarget,
    directory_of,
    rendered_regions,
)
from reconciler.gitops.repository.status import ClusterStatus
from reconciler.model.errors import ConfigError
from reconciler.ports.repository import FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Says what the repository should hold for one cluster."""

    cluster: str
    changes: tuple[FileChange, ...]
    """Every rendered file, and the removal of those of an older render."""
    directories: tuple[str, ...]
    """Its root modules, with that of the home Region first."""
    left_out: Mapping[str, str]
    """Fleets that Terraform does not make here, with the reason."""
    claims: frozenset[str] = frozenset()
    """What no other config of the repository may describe as well, in words for people."""

    @property
    def files(self) -> dict[str, bytes]:
        """Return every rendered file by its path."""
        return {
            change.path: change.content for change in self.changes if change.content is not None
        }


def propose(
    target: RenderTarget,
    config: bytes,
    *,
    old_manifests: Mapping[str | None, bytes],
    rendered_for: str | None = None,
    cluster_name: str | None = None,
) -> Proposal:
    """Validate and render one config.

    A Region without fleets keeps an empty root module, so that the pipeline plans the removal of
    the fleets; it ends when its directory is removed by hand.

    Args:
        target: The paths of the config and of its files.
        config: The YAML.
        old_manifests: The manifests that are in its directories now, by Region; None is home.
        rendered_for: The Region that the home Region's directory was rendered for; None: no Region,
            or never.
        cluster_name: Name of the cluster; it overrides the config's.

    Raises:
        ConfigError: The config has faults; nothing may be rendered from it.
        UsageError: No cluster is named, or the home Region is another one now.
    """
    parsed = parse_config(
        config, name=target.config_path, cluster_name=cluster_name, purpose=Purpose.RENDER
    )
    also = [region for region in old_manifests if region is not None]
    check_home_region(parsed, target.output_dir, rendered_for=rendered_for, further=also)
    roots = root_modules_of(parsed, cluster_name=cluster_name, also=also)
    home = roots[None]
    return Proposal(
        cluster=home.cluster_name,
        changes=tuple(
            change
            for region, root in roots.items()
            for change in _changes(
                directory_of(target.output_dir, region), root, old_manifests.get(region)
            )
        ),
        directories=tuple(directory_of(target.output_dir, region) for region in roots),
        left_out=dict(home.left_out),
        claims=frozenset(
            claim
            for region, root in roots.items()
            for claim in _claims(
                root, directory_of(target.output_dir, region), parsed.interruption.queue_url
            )
        ),
    )


def _changes(directory: str, root: RootModule, old_manifest: bytes | None) -> Iterator[FileChange]:
    """Yield every file of one root module, and the removal of those of an older render."""
    rendered = {file.path: file.content for file in render(root)}
    gone = sorted(_rendered_before(old_manifest) - set(rendered))
    for path in [*sorted(rendered), *gone]:
        yield FileChange(path=f"{directory}/{path}", content=rendered.get(path))


def _claims(root: RootModule, directory: str, queue_url: str) -> Iterator[str]:
    """Yield a directory, a state and the fleets of a cluster: a copied folder must be edited first.

    Clusters of one name are distinguished by where their fleets launch, as they may be in several
    accounts.
    """
    yield f"the directory {directory}"
    if root.backend is not None:
        yield f"the state {root.backend.key} in bucket {root.backend.bucket}"
    for name, variables in root.fleets.items():
        for place in _places(root, variables, queue_url):
            yield f"fleet {name} of cluster {root.cluster_name} in {place}"


def claims_of_render(
    directory: str, contents: Mapping[str, bytes], config: bytes
) -> frozenset[str]:
    """Return what a rendered root module describes, as `Proposal.claims` of the config it is of.

    Args:
        directory: Its directory.
        contents: Its files, by their path in it; values that are not a render's describe nothing.
        config: The config as it is now, whatever faults it has: it names the interruption queue.
    """
    try:
        return frozenset(_claims(root_read(contents), directory, _queue_url_in(config)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return frozenset()


def _queue_url_in(config: bytes) -> str:
    try:
        section = read_document(config).get("interruption")
    except ConfigError:
        return ""
    return str(section.get("queue_url") or "") if isinstance(section, Mapping) else ""


def _places(root: RootModule, variables: Mapping[str, Any], queue_url: str) -> Iterator[str]:
    """Yield where a fleet launches: its subnets by id, else what selects them in one account.

    Tags and zones are the same in many accounts, so the bucket of the state, the interruption queue
    and the ids of security groups, which as a rule are of one account, are part of the answer.
    """
    overrides: Sequence[Mapping[str, Any]] = variables.get("overrides", ())
    subnets = {*variables.get("private_subnet_ids", {}).values()}
    subnets |= {override["subnet_id"] for override in overrides if override.get("subnet_id")}
    yield from sorted(subnets)
    tags = variables.get("subnet_tags", {})
    if subnets or not (tags or overrides):
        return
    zones = sorted({str(override.get("availability_zone") or "any zone") for override in overrides})
    selected = ", ".join([*(f"{key}={value}" for key, value in sorted(tags.items())), *zones])
    groups = {variables.get("security_group_id", ""), *variables.get("security_group_ids", ())}
    account = [
        root.region or "",
        *sorted(groups - {""}),
        f"states in bucket {root.backend.bucket}" if root.backend else "",
        f"queue {queue_url}" if queue_url else "",
    ]
    yield f"the subnets with {', '.join([selected, *filter(None, account)])}"


def unchanged(target: RenderTarget, proposal: Proposal) -> ClusterStatus:
    """Return the status of a config whose directories hold what it renders to."""
    return ClusterStatus(
        target=target,
        state="unchanged",
        cluster=proposal.cluster,
        directories=proposal.directories,
        left_out=proposal.left_out,
    )


def described_elsewhere(
    target: RenderTarget, claims: frozenset[str], claimed: Mapping[str, Sequence[str]]
) -> str:
    """Return which other config describes the same as this one, for people; empty when none does.

    Args:
        target: This config.
        claims: What it describes, see `Proposal.claims`.
        claimed: Paths of configs by what they describe.
    """
    for claim in sorted(claims):
        others = [path for path in claimed[claim] if path != target.config_path]
        if others:
            return f"{claim}: {', '.join(others)} describes that too"
    return ""


def manifest_paths(target: RenderTarget, files: Collection[str]) -> dict[str | None, str]:
    """Return where the directories list their rendered files, by Region; None is home.

    Args:
        target: The paths of the config and of its files.
        files: Paths that the repository holds.
    """
    regions = (None, *rendered_regions(target.output_dir, files))
    paths = {r: f"{directory_of(target.output_dir, r)}/{MANIFEST}" for r in regions}
    return {region: path for region, path in paths.items() if path in files}


def not_of_a_render(
    target: RenderTarget,
    proposal: Proposal,
    old_manifests: Mapping[str | None, bytes],
    files: Collection[str],
) -> tuple[FileChange, ...]:
    """Return the changes of existing files that no older render wrote.

    Args:
        target: The paths of the config and of its files.
        proposal: What is rendered there now.
        old_manifests: See `propose`.
        files: Paths that the repository holds.
    """
    ours = written_by_renders(target, old_manifests)
    return tuple(c for c in proposal.changes if c.path in files and c.path not in ours)


def written_by_renders(
    target: RenderTarget, manifests: Mapping[str | None, bytes]
) -> frozenset[str]:
    """Return the paths that the manifests list, and their own; see `propose`."""
    return frozenset(
        f"{directory_of(target.output_dir, region)}/{path}"
        for region, manifest in manifests.items()
        for path in (*_rendered_before(manifest), MANIFEST)
    )


def _rendered_before(manifest: bytes | None) -> set[str]:
    """Return paths that an older render wrote; invalid ones are not ours to remove."""
    try:
        files = orjson.loads(manifest or b"{}")["files"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return set()
    if not isinstance(files, list):
        return set()
    return {path for path in files if isinstance(path, str) and _stays_inside(path)}


def _stays_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return str(pure) == path and not pure.is_absolute() and ".." not in pure.parts and path != "."

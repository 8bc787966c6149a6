"""From a config's bytes to the files that its directory should hold: pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import orjson

from reconciler.config.loader import Purpose, parse_config
from reconciler.gitops.render import MANIFEST, render
from reconciler.gitops.root_module import RootModule, root_module_of
from reconciler.gitops.targets import RenderTarget
from reconciler.ports.repository import FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What the repository should hold for one cluster."""

    cluster: str
    changes: tuple[FileChange, ...]
    """Every rendered file, and the removal of those of an older render."""
    left_out: Mapping[str, str]
    """Fleets that Terraform does not make here, with the reason."""
    claims: frozenset[str] = frozenset()
    """What no other config of the repository may describe as well, in words for people."""


def propose(
    target: RenderTarget,
    config: bytes,
    *,
    old_manifest: bytes | None,
    cluster_name: str | None = None,
) -> Proposal:
    """Validate and render one config.

    Args:
        target: Where the config lies and where its files belong.
        config: The YAML.
        old_manifest: The manifest that the output directory holds now; None: it has none.
        cluster_name: Name of the cluster; it wins over the config's.

    Raises:
        ConfigError: The config has faults; nothing may be rendered from it.
        UsageError: No cluster is named.
    """
    root = root_module_of(
        parse_config(
            config,
            name=target.config_path,
            cluster_name=cluster_name,
            purpose=Purpose.RENDER,
        ),
        cluster_name=cluster_name,
    )
    rendered = {file.path: file.content for file in render(root)}
    gone = sorted(_listed(old_manifest) - set(rendered))
    return Proposal(
        cluster=root.cluster_name,
        changes=tuple(
            FileChange(path=f"{target.output_dir}/{path}", content=rendered.get(path))
            for path in [*sorted(rendered), *gone]
        ),
        left_out=dict(root.left_out),
        claims=frozenset(_claims(root)),
    )


def _claims(root: RootModule) -> Iterator[str]:
    """A state, and the fleets of a cluster: in a copied folder they may not have been changed.

    Clusters of one name are told apart by their subnets: they may be of several accounts.
    """
    if root.backend is not None:
        yield f"the state {root.backend.key} in bucket {root.backend.bucket}"
    for name, variables in root.fleets.items():
        for subnet in variables.get("private_subnet_ids", {}).values():
            yield f"fleet {name} of cluster {root.cluster_name} in {subnet}"


def described_elsewhere(
    target: RenderTarget, proposal: Proposal, claimed: Mapping[str, Sequence[str]]
) -> str:
    """Which other config describes what this one does, for people; empty when none does.

    Args:
        target: This config.
        proposal: What it renders to.
        claimed: Paths of configs by what they describe.
    """
    for claim in sorted(proposal.claims):
        others = [path for path in claimed[claim] if path != target.config_path]
        if others:
            return f"{claim}: {', '.join(others)} describes that too"
    return ""


def manifest_path(target: RenderTarget) -> str:
    """Where the output directory lists what was rendered into it."""
    return f"{target.output_dir}/{MANIFEST}"


def not_of_a_render(
    target: RenderTarget,
    proposal: Proposal,
    old_manifest: bytes | None,
    files: Collection[str],
) -> tuple[FileChange, ...]:
    """The changes of files that are there already and that no older render wrote.

    Args:
        target: Where the files belong.
        proposal: What is rendered there now.
        old_manifest: See `propose`.
        files: Paths that the repository holds.
    """
    listed = {f"{target.output_dir}/{path}" for path in _listed(old_manifest)}
    ours = listed | {manifest_path(target)}
    return tuple(c for c in proposal.changes if c.path in files and c.path not in ours)


def _listed(manifest: bytes | None) -> set[str]:
    """Paths that an older render wrote; anything odd in the manifest is not ours to remove."""
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

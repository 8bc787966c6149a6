"""From a config's bytes to the files that its directory should hold: pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import orjson

from reconciler.config.loader import parse_config
from reconciler.gitops.render import MANIFEST, render
from reconciler.gitops.root_module import root_module_of
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
        cluster_name: Name of the cluster for a config without one.

    Raises:
        ConfigError: The config has faults; nothing may be rendered from it.
        UsageError: Nobody names the cluster.
    """
    root = root_module_of(
        parse_config(config, name=target.config_path, cluster_name=cluster_name),
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
    )


def manifest_path(target: RenderTarget) -> str:
    """Where the output directory lists what was rendered into it."""
    return f"{target.output_dir}/{MANIFEST}"


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

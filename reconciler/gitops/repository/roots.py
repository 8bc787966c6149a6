"""Which root modules of a config repository a pipeline has to process; pure."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.config.document import read_document, with_stated_keys
from reconciler.gitops.rendering.targets import (
    DEFAULT_OUTPUT,
    ONE_EACH,
    RenderTarget,
    directory_of,
    find_targets,
    rendered_regions,
    shared_outputs,
)
from reconciler.model.errors import ConfigError, UsageError

NAME_MAX: Final = 100
_PLAIN: Final = re.compile(r"[A-Za-z0-9_/-]+", re.ASCII)
_DIGEST: Final = 8
NONE: Final[Mapping[str, Collection[str]]] = {}
"""No further Regions, and no files that a config names."""


def changed_roots(
    files: Sequence[str],
    patterns: Sequence[str],
    output: str = DEFAULT_OUTPUT,
    changed: Collection[str] | None = None,
    further: Mapping[str, Collection[str]] = NONE,
    named: Mapping[str, Collection[str]] = NONE,
) -> tuple[RenderTarget, ...]:
    """Return the root modules whose config, with the files that it names, or directory changed.

    They are sorted.

    The root modules of further Regions are those that were rendered, and those in `further`: a
    target each.

    Args:
        files: Paths of all files of the checkout.
        patterns: Config paths, see `find_targets`.
        output: The output directory, relative to each config's own.
        changed: Paths that changed, removed ones included; None: every target counts.
        further: Further Regions that a config will be rendered for, by its path.
        named: Paths of files that a config names (a policy file, a catalogue), by its path: with a
            fault in one of them the config has a fault.

    Raises:
        UsageError: A pattern is invalid, or two configs would share an output.
    """
    targets = find_targets(files, patterns, output)
    shared = shared_outputs(targets)
    if shared:
        raise UsageError("--config", next(iter(shared.values())), ONE_EACH)
    every = sorted(root for target in targets for root in _roots_of(target, files, further))
    if changed is None:
        return tuple(every)
    return tuple(
        target
        for target in every
        if target.config_path in changed
        or not set(named.get(target.config_path, ())).isdisjoint(changed)
        or any(path.startswith(f"{target.output_dir}/") for path in changed)
    )


def _roots_of(
    target: RenderTarget, files: Sequence[str], further: Mapping[str, Collection[str]]
) -> Iterator[RenderTarget]:
    """Yield the root modules of a config: that of the home Region, and further ones."""
    regions = {*rendered_regions(target.output_dir, files), *further.get(target.config_path, ())}
    for region in (None, *sorted(regions)):
        yield replace(target, output_dir=directory_of(target.output_dir, region))


def gone_configs(
    files: Sequence[str], patterns: Sequence[str], changed: Collection[str]
) -> tuple[str, ...]:
    """Return removed configs: what they rendered still exists in EC2, and nothing plans it.

    Args:
        files: Paths of all files of the checkout.
        patterns: Config paths, see `find_targets`.
        changed: Paths that changed, removed ones included.
    """
    removed = sorted(set(changed) - set(files))
    return tuple(
        target.config_path
        for target in find_targets(removed, patterns)
        if target.config_path in removed
    )


def moved_to(content: bytes, others: Mapping[str, bytes]) -> str:
    """Return the path of the config that a removed one has become; empty: it was removed.

    That is one of the same cluster with the same content, or with the same state. Clusters of one
    name may be in several accounts, so the name alone does not say it.

    Args:
        content: The removed config.
        others: Configs that were added or changed, by path.
    """
    cluster, state = cluster_in(content), _state_in(content)
    for path, other in sorted(others.items()):
        if other == content:
            return path
        if cluster and state and (cluster, state) == (cluster_in(other), _state_in(other)):
            return path
    return ""


def _state_in(content: bytes) -> tuple[str, str] | None:
    """Return bucket and key of the state that a config names, valid or not; None: it names none."""
    try:
        terraform = read_document(content).get("terraform")
    except ConfigError:
        return None
    backend = terraform.get("backend") if isinstance(terraform, Mapping) else None
    if not isinstance(backend, Mapping) or not (backend.get("bucket") and backend.get("key")):
        return None
    return str(backend["bucket"]), str(backend["key"])


def root_name(output_dir: str) -> str:
    """Return a directory's name for artifacts and the like: plain, bounded and unique."""
    if _PLAIN.fullmatch(output_dir) and len(output_dir) <= NAME_MAX:
        return output_dir.replace("/", ".")
    plain = re.sub(r"[^A-Za-z0-9_-]", ".", output_dir)[: NAME_MAX - _DIGEST - 1]
    return f"{plain}-{hashlib.sha256(output_dir.encode()).hexdigest()[:_DIGEST]}"


def cluster_in(content: bytes) -> str:
    """Return the cluster that a config names, valid or not; empty when it names none."""
    try:
        return cluster_named(content)
    except ConfigError:
        return ""


def cluster_named(content: bytes) -> str:
    """Return the cluster that a config names, valid or not; empty when it names none.

    Raises:
        ConfigError: It is no YAML mapping.
    """
    document = with_stated_keys(read_document(content))
    named = document.get("cluster") or document.get("cluster_name")
    return str(named) if isinstance(named, str) else ""

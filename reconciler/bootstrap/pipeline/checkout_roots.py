"""Finds the root modules of the checkout that a pipeline runs in."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.adapters.git.checkout import GitCheckout
from reconciler.config.document import read_document, with_stated_keys
from reconciler.config.loader import files_named, parse_config, read_config_bytes
from reconciler.config.resolve import further_regions_of
from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.rendering.targets import RenderTarget, find_targets, not_found, overlooked
from reconciler.gitops.repository.followed import beside
from reconciler.gitops.repository.roots import (
    changed_roots,
    cluster_in,
    gone_configs,
    moved_to,
)
from reconciler.model.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutRoot:
    """Names one root module of the checkout and its cluster."""

    target: RenderTarget
    cluster: str
    """The cluster's name in its config; empty when the config has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutRoots:
    """Lists the root modules of a checkout."""

    roots: tuple[CheckoutRoot, ...]
    """The root modules that were asked for."""
    gone: tuple[str, ...]
    """Configs that were removed and did not move."""
    moved: Mapping[str, str]
    """Where configs moved to, by their former path."""
    overlooked: tuple[str, ...]
    """Paths and patterns that find no config, changed or not, in words."""


def roots_of_checkout(
    configs: tuple[str, ...],
    output: str,
    since: str,
    *,
    rendered: bool = False,
    removing: bool = False,
) -> CheckoutRoots:
    """Return the root modules of this checkout that changed since a commit.

    Args:
        configs: Paths or patterns, see `find_targets`.
        output: The output directory, relative to each config's own.
        since: Name of the commit; empty: all.
        rendered: Whether to leave out those that were never rendered.
        removing: Whether to leave out those whose config approves no removal.

    Raises:
        UsageError: A path or the name of the commit is invalid.
        ToolError: git is missing.
    """
    checkout = GitCheckout()
    changed = checkout.changed_since(".", since) if since else None
    files = checkout.files(".")
    every = {target.config_path for target in changed_roots(files, configs, output)}
    there = {path for path in every if Path(path).is_file()}
    named: dict[str, tuple[str, ...]] = {}
    examined = there
    if changed is not None:
        named = {path: _files_named_by(path) for path in there}
        examined = there & set(changed)
    further: dict[str, tuple[str, ...]] = {}
    if not rendered:  # A pull request may add a Region, of which nothing is rendered yet.
        further = {path: _further_regions_of(path) for path in examined}
    roots = tuple(
        CheckoutRoot(target=target, cluster=_cluster_of(target.config_path))
        for target in changed_roots(files, configs, output, changed, further, named)
        if target.config_path in there
        and (not rendered or f"{target.output_dir}/{TFVARS}" in files)
        and (not removing or _approves_removals(target.config_path))
    )
    removed = gone_configs(files, configs, changed or ())
    moved = _moved(checkout, since, removed, there & set(changed or ()))
    return CheckoutRoots(
        roots=roots,
        gone=tuple(path for path in removed if path not in moved),
        moved=moved,
        overlooked=(*_missing(configs), *overlooked(files, checkout.submodules("."), configs)),
    )


def _moved(
    checkout: GitCheckout, since: str, removed: Sequence[str], changed: Collection[str]
) -> dict[str, str]:
    """Return where removed configs moved to, by their former path; `changed` may hold them now."""
    if not removed:
        return {}
    contents = {path: content for path in changed if (content := _content_of(path))}
    before = {path: checkout.content_at(".", since, path) or b"" for path in removed}
    return {path: new for path in removed if (new := moved_to(before[path], contents))}


def _missing(configs: tuple[str, ...]) -> Iterator[str]:
    """Yield in words which configs that are named without a wildcard are not there."""
    for target in find_targets((), configs):
        if not Path(target.config_path).is_file():
            yield not_found(target.config_path)


def _approves_removals(config: str) -> bool:
    """Return whether a config lists a fleet in `allow_destroy`; an unreadable one counts too."""
    try:
        stated = with_stated_keys(read_document(read_config_bytes(config)))
        return bool(stated.get("allow_destroy"))
    except ConfigError:
        return True


def _further_regions_of(config: str) -> tuple[str, ...]:
    """Return the further Regions that a config is rendered for; none of one with faults."""
    try:
        return further_regions_of(parse_config(read_config_bytes(config), name=config))
    except ConfigError:
        return ()


def _files_named_by(config: str) -> tuple[str, ...]:
    """Return the paths of the files that a config names; none of an unreadable one."""
    try:
        return tuple(beside(config, files_named(read_config_bytes(config))).values())
    except ConfigError:
        return ()


def _cluster_of(config: str) -> str:
    return cluster_in(_content_of(config))


def _content_of(config: str) -> bytes:
    """Return a config's content; nothing of one that cannot be read."""
    try:
        return read_config_bytes(config)
    except ConfigError:
        return b""

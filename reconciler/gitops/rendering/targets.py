"""Which configs of a repository are rendered, and where to; pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from reconciler.model.errors import UsageError
from reconciler.model.ids import REGION_PATTERN
from reconciler.ports.repository import MOVE_IT, NOT_FOLLOWED

DEFAULT_OUTPUT = "terraform"
_SUBMODULES_LISTED_MAX = 10
"""A repository may have any number, and each would be a line of the log at every commit."""
MANIFEST = ".rendered.json"
"""Lists every file of a render, so that the next one knows which files it may remove."""
_NO_NAMES = frozenset({"", ".", "..", ".git"})
"""Names that git does not check out, in lower case or not."""
ONE_EACH = "one directory per cluster"
"""What to do when configs share an output."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RenderTarget:
    """Pairs a sector config of the repository with the directory that is rendered from it."""

    config_path: str
    """Relative to the repository, with `/`."""
    output_dir: str


def find_targets(
    files: Sequence[str], patterns: Sequence[str], output: str = DEFAULT_OUTPUT
) -> tuple[RenderTarget, ...]:
    """Return the targets in a repository with these files, sorted.

    Args:
        files: Paths of all files.
        patterns: Config paths, such as `sectors.yaml` or, with one directory per cluster,
            `clusters/*/sectors.yaml`; `*` stays within one directory. A path without a wildcard is
            a target even when it is missing, so that its absence is reported. What a wildcard
            matches counts if git could check it out, as a hand-made tree may have any names.
        output: The output directory, relative to each config's own.

    Raises:
        UsageError: A path leaves the repository, or two that are named would share an output.
    """
    found: set[str] = set()
    named: set[str] = set()
    for pattern in patterns:
        plain = _inside(pattern, "--config")
        if _is_wild(pattern):
            expression = re.compile(_within_directories(plain))
            found |= {f for f in files if expression.fullmatch(f) and _can_be_checked_out(f)}
        else:
            named.add(plain)
    shared = shared_outputs([_target(path, output) for path in named])
    if shared:
        raise UsageError("--config", next(iter(shared.values())), ONE_EACH)
    return tuple(sorted(_target(path, output) for path in found | named))


def overlooked(
    files: Sequence[str], submodules: Sequence[str], patterns: Sequence[str]
) -> tuple[str, ...]:
    """Return in words what patterns with a wildcard do not find though somebody may expect it.

    Args:
        files: Paths of all files.
        submodules: Paths of all submodules.
        patterns: Config paths, see `find_targets`.
    """
    notes = []
    for pattern in patterns:
        within = list(_in_submodules(pattern, submodules))
        notes += [
            f"{submodule} is a submodule, {NOT_FOLLOWED}: {path} is not looked for ({MOVE_IT})"
            for submodule, path in within[:_SUBMODULES_LISTED_MAX]
        ]
        if len(within) > _SUBMODULES_LISTED_MAX:
            more = len(within) - _SUBMODULES_LISTED_MAX
            notes.append(
                f"{pattern} also matches other submodules, none of them followed: {more:,}"
            )
        if not within and _is_wild(pattern) and not find_targets(files, [pattern]):
            notes.append(f"{not_found(pattern)} (* matches one directory, and ** is the same)")
    return tuple(notes)


def not_found(pattern: str) -> str:
    """Return the message for a config path or pattern that matches no file."""
    return f"no sector config is called {pattern}"


def _in_submodules(pattern: str, submodules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the submodules that the folders of a pattern match, and the path that it means there.

    What a submodule holds is not known here, so its configs may or may not exist.
    """
    if not _is_wild(pattern):
        return
    parts = PurePosixPath(_inside(pattern, "--config")).parts
    for submodule in submodules:
        depth = submodule.count("/") + 1
        folder = _within_directories("/".join(parts[:depth]))
        if depth < len(parts) and re.fullmatch(folder, submodule):
            yield submodule, "/".join((submodule, *parts[depth:]))


def shared_outputs(targets: Sequence[RenderTarget]) -> dict[RenderTarget, str]:
    """Return why targets cannot be rendered next to others: they would remove each other's files.

    Returns:
        What is wrong, by target, without those that have an output of their own.
    """
    configs: dict[str, list[str]] = {}
    for target in sorted(targets):
        configs.setdefault(target.output_dir, []).append(target.config_path)
    return {
        target: f"{', '.join(configs[target.output_dir])} would share {target.output_dir}"
        for target in targets
        if len(configs[target.output_dir]) > 1
    }


def directory_of(output_dir: str, region: str | None) -> str:
    """Return the directory of a Region's root module; None is the home Region."""
    return output_dir if region is None else f"{output_dir}-{region}"


def rendered_regions(output_dir: str, files: Collection[str]) -> tuple[str, ...]:
    """Return the further Regions with a root module next to that of the home Region, sorted.

    Args:
        output_dir: The directory of the home Region's root module.
        files: Paths of all files of the repository.
    """
    begin, end = f"{output_dir}-", f"/{MANIFEST}"
    beside = (
        file[len(begin) : -len(end)]
        for file in files
        if file.startswith(begin) and file.endswith(end)
    )
    return tuple(sorted(each for each in beside if re.fullmatch(REGION_PATTERN, each)))


def _target(config_path: str, output: str) -> RenderTarget:
    directory = PurePosixPath(config_path).parent
    joined = _inside(str(directory / output) if output else "", "--out")
    if PurePosixPath(joined) in (PurePosixPath(config_path), *PurePosixPath(config_path).parents):
        raise UsageError(
            "--out", f"{output!r} is the folder of the config", "render into a directory of its own"
        )
    return RenderTarget(config_path=config_path, output_dir=joined)


def _inside(path: str, option: str) -> str:
    """Return the path without `.`; UsageError when it is absolute or leaves the repository."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or not pure.parts or any(p.lower() in _NO_NAMES for p in pure.parts):
        raise UsageError(option, f"{path[:80]!r} is not a path inside the repository")
    return str(pure)


def _is_wild(pattern: str) -> bool:
    return any(character in pattern for character in "*?")


def _can_be_checked_out(file: str) -> bool:
    return all(name.lower() not in _NO_NAMES for name in file.split("/"))


def _within_directories(pattern: str) -> str:
    """Return a regular expression for the pattern in which no wildcard matches a `/`."""
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(character) or re.escape(character) for character in pattern)


def own_files(target: RenderTarget, files: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return paths and blobs that the decision about one cluster is based on.

    Args:
        target: The cluster's config and directory.
        files: Blobs of everything in the repository, by path.
    """
    regions = (None, *rendered_regions(target.output_dir, files))
    inside = tuple(f"{directory_of(target.output_dir, region)}/" for region in regions)
    return frozenset(
        (path, blob)
        for path, blob in files.items()
        if path == target.config_path or path.startswith(inside)
    )

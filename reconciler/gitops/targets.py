"""Which configs of a repository are rendered, and to where: pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from reconciler.model.errors import UsageError

DEFAULT_OUTPUT = "terraform"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RenderTarget:
    """One sector config of the repository and the directory that is rendered from it."""

    config_path: str
    """Relative to the repository, with `/`."""
    output_dir: str


def find_targets(
    files: Sequence[str], patterns: Sequence[str], output: str = DEFAULT_OUTPUT
) -> tuple[RenderTarget, ...]:
    """The targets in a repository that holds these files, sorted.

    Args:
        files: Paths of all files.
        patterns: Config paths, such as `sectors.yaml` or, with one directory per cluster,
            `clusters/*/sectors.yaml`; `*` stays within one directory. A path without a wildcard
            is a target even when it is missing, so that its absence is noticed.
        output: The output directory, relative to each config's own.

    Raises:
        UsageError: A path leaves the repository, or two configs would share an output.
    """
    found: set[str] = set()
    for pattern in patterns:
        plain = _inside(pattern)
        if any(c in pattern for c in "*?"):
            expression = re.compile(_within_directories(plain))
            found |= {file for file in files if expression.fullmatch(file)}
        else:
            found.add(plain)
    targets = tuple(sorted(_target(path, output) for path in found))
    outputs = [target.output_dir for target in targets]
    if len(set(outputs)) < len(outputs):
        raise UsageError(
            "--config", "two configs would share an output", "one directory per cluster"
        )
    return targets


def _target(config_path: str, output: str) -> RenderTarget:
    directory = PurePosixPath(config_path).parent
    joined = _inside(str(directory / output))
    if PurePosixPath(joined) in (PurePosixPath(config_path), *PurePosixPath(config_path).parents):
        raise UsageError(
            "--out", f"{output!r} is where the config lies", "render into a directory of its own"
        )
    return RenderTarget(config_path=config_path, output_dir=joined)


def _inside(path: str) -> str:
    """The path without `.`, or UsageError when it is absolute or leaves the repository."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or not pure.parts or any(p.lower() in {"..", ".git"} for p in pure.parts):
        raise UsageError("path", f"{path[:80]!r} is no path inside the repository")
    return str(pure)


def _within_directories(pattern: str) -> str:
    """A regular expression for the pattern in which no wildcard crosses a `/`."""
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(character) or re.escape(character) for character in pattern)

"""Determines the one config of a repository that the capacity loop runs with; pure."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from reconciler.model.errors import Problem
from reconciler.ports.repository import CommitId

_INSIDE: Final = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedConfig:
    """Holds a valid sector config as one commit of the repository has it."""

    path: str
    """In the repository."""
    commit: CommitId
    """The commit that last changed it."""
    content: bytes
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files that it names, by their path relative to it: a policy file, a catalogue."""

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return f"{self.path}@{self.commit[:12]}"

    @property
    def digest(self) -> str:
        """Return the SHA-256 over the config and the files that it names."""
        digest = hashlib.sha256(self.content)
        for name, content in sorted(self.files.items()):
            digest.update(hashlib.sha256(name.encode() + b"\0" + content).digest())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchConfig:
    """Tells the capacity loop which config the branch has, or why it has none."""

    config: FollowedConfig | None
    """The newest valid one; None: there is none, or it is not certain which one is this
    cluster's."""
    trouble: str = ""
    """Why the head of the branch is not that config; empty when it is."""
    problems: tuple[Problem, ...] = ()
    """Faults of the config at the head."""


def config_of(cluster: str, named: Mapping[str, str]) -> tuple[str, str]:
    """Return the path of a cluster's config, or an empty path and why it is not certain.

    Args:
        cluster: Empty when no cluster was named.
        named: The cluster that each config names, by path; empty for those that name none.
    """
    if not named:
        return "", "the branch has no sector config of the names that are looked for"
    theirs = [path for path, name in named.items() if name == cluster] if cluster else []
    silent = [path for path, name in named.items() if not name or not cluster]
    found = sorted(theirs or silent)
    if len(found) == 1:
        return found[0], ""
    if not found:
        return "", f"no sector config of the branch is for cluster {cluster}"
    listed = ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
    if not cluster:
        return "", f"several sector configs are there: name one with --cluster-name: {listed}"
    if theirs:
        return "", f"several sector configs are for cluster {cluster}: {listed}"
    return "", f"no sector config is for cluster {cluster}, and several name no cluster: {listed}"


def is_inside(name: str) -> bool:
    """Return whether a path that a config names is in the config's own folder."""
    return _INSIDE.fullmatch(name) is not None and ".." not in PurePosixPath(name).parts


def beside(config_path: str, names: Sequence[str | None]) -> dict[str, str]:
    """Return the paths in the repository of files that a config names, by the names in it."""
    folder = PurePosixPath(config_path).parent
    return {name: str(folder / name) for name in names if name and is_inside(name)}

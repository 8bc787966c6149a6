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
    """The newest valid one of the commits in which it is certain which one is this cluster's; None:
    there is none."""
    trouble: str = ""
    """Why the head of the branch is not that config; empty when it is."""
    problems: tuple[Problem, ...] = ()
    """Faults of the config at the head."""
    remedy: str = ""
    """What ends the trouble, for people; empty when it is faults that have to be fixed."""


def config_of(cluster: str, named: Mapping[str, str]) -> tuple[str, str]:
    """Return the path of a cluster's config, or an empty path and why it is not certain.

    Args:
        cluster: Empty when no cluster was named.
        named: The cluster that each config names, by path; empty for those that name none.
    """
    if not named:
        return "", "the branch has no sector config of the names that are looked for"
    found = candidates(cluster, named)
    if len(found) == 1:
        return found[0], ""
    if not found:
        return "", f"no sector config of the branch is for cluster {cluster}"
    listed = ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
    if not cluster:
        return "", f"several sector configs are there: name one with --cluster-name: {listed}"
    if named[found[0]]:
        return "", f"several sector configs are for cluster {cluster}: {listed}"
    return "", f"no sector config is for cluster {cluster}, and several name no cluster: {listed}"


def candidates(cluster: str, named: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of the configs that may be a cluster's, sorted; see `config_of`."""
    theirs = [path for path, name in named.items() if name == cluster] if cluster else []
    silent = [path for path, name in named.items() if not name or not cluster]
    return tuple(sorted(theirs or silent))


def lost_sight(
    cluster: str, kept: str, named: Mapping[str, str], removed_by: str
) -> tuple[str, str]:
    """Return what became of the config that was a cluster's, and what to do; for people.

    Args:
        cluster: See `config_of`, which finds no config of it.
        kept: The path of the config that was its last certain one.
        named: The cluster that each config of the head names, by path.
        removed_by: The commit that removed the config, when it is gone; empty: it is too old to be
            known.
    """
    found = candidates(cluster, named)
    by = f"commit {removed_by} removed" if removed_by else "a commit removed"
    gone = "" if kept in named else f"{by} {kept}"
    if not cluster and found:
        return gone, "name this cluster with --cluster-name"
    if kept in found:
        others = ", ".join(path for path in found if path != kept)
        return "", f"let {others} name its own cluster, or remove it: {kept} was there before"
    if found:
        return gone, f"leave one of {', '.join(found)}, and remove or rename the others"
    if gone:
        how = f"git revert {removed_by}" if removed_by else f"see git log -- {kept}"
        return gone, (
            f"bring it back ({how}); if it was moved, name its new path with"
            " --gitops-config; if the cluster is to go, end this program"
        )
    return f"{kept} names cluster {named[kept]}", f"let {kept} name cluster {cluster} again"


def is_inside(name: str) -> bool:
    """Return whether a path that a config names is in the config's own folder."""
    return _INSIDE.fullmatch(name) is not None and ".." not in PurePosixPath(name).parts


def beside(config_path: str, names: Sequence[str | None]) -> dict[str, str]:
    """Return the paths in the repository of files that a config names, by the names in it."""
    folder = PurePosixPath(config_path).parent
    return {name: str(folder / name) for name in names if name and is_inside(name)}

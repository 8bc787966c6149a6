"""A branch in memory, and a follower of it, for tests of which config is in force."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, cast

from reconciler.gitops.repository.followed import BranchConfig
from reconciler.loops.second_loop.config_follower import ConfigFollower
from reconciler.ports.repository import Commit, CommitId, Removal, TreeFile

OURS, THEIRS = "clusters/c1/sectors.yaml", "clusters/x/sectors.yaml"
COPY = "clusters/b/sectors.yaml"
CONFIG = "cluster: c1\nsectors: {p: {kind: memory, fleets: [{size: small, max_capacity: 3}]}}\n"
OTHER = CONFIG.replace("c1", "x")
BROKEN = "<<<<<<< HEAD\n" + CONFIG
FAULTY = CONFIG.replace("max_capacity: 3", "max_capacity: -3")
POLICIES = "clusters/c1/policies.yaml"
WITH_POLICIES = CONFIG + "descheduler: {enabled: true, policy_file: policies.yaml}\n"
VALID_POLICIES = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"
WITH_CATALOGUE = CONFIG + "catalogue: types.json\n"
CATALOGUE = "clusters/c1/types.json"


class Branch:
    """A branch with these files; reading one that is an error raises it."""

    def __init__(
        self, files: Mapping[str, str | Exception], *older: Mapping[str, str | Exception]
    ) -> None:
        self.contents = files
        self.older = older
        self.read_paths: list[str] = []

    def at(self, commit: CommitId) -> Mapping[str, str | Exception]:
        """The files of a commit: older ones have negative numbers, `-1` right before the head."""
        back = -min(0, int(commit))
        return self.older[back - 1] if back else self.contents

    def files(self, commit: CommitId) -> tuple[TreeFile, ...]:
        """Every file."""
        return tuple(
            TreeFile(path=path, blob=f"{zlib.crc32(str(content).encode()):040x}", size_bytes=1)
            for path, content in sorted(self.at(commit).items())
        )

    def read(self, commit: CommitId, path: str) -> bytes:
        """The content, or the error."""
        self.read_paths.append(path)
        content = self.at(commit)[path]
        if isinstance(content, Exception):
            raise content
        return content.encode()

    def last_change(self, commit: CommitId, _paths: Sequence[str], *, deep: bool = False) -> Commit:
        """The commit itself."""
        del deep
        return Commit(id=commit, subject="Change")

    def changes(
        self, commit: CommitId, paths: Sequence[str], commits_max: int, *, deep: bool = False
    ) -> Iterator[CommitId]:
        """The commits that differ in one of the paths from the one before; deep beyond the first.

        Only the newest older commit counts as fetched.
        """
        numbers = self.numbers(commit)
        numbers = numbers if deep else numbers[:2]
        of_paths = [[self.at(number).get(path) for path in paths] for number in numbers]
        pairs = zip(of_paths, [*of_paths[1:], None], strict=True)
        found = (
            number for number, (now, before) in zip(numbers, pairs, strict=True) if now != before
        )
        yield from islice(found, commits_max)

    def numbers(self, commit: CommitId) -> list[CommitId]:
        """A commit and those before it."""
        back = -min(0, int(commit))
        older = range(back + 1, len(self.older) + 1)
        return [commit, *(CommitId(f"-{number:039}") for number in older)]

    def removals(self, commit: CommitId) -> Iterator[Removal]:
        """The paths that a commit has no more."""
        for now, before in pairwise(self.numbers(commit)):
            for path in sorted(self.at(before).keys() - self.at(now).keys()):
                yield Removal(commit=now, before=before, path=path)


def commit(number: int) -> Commit:
    """One commit of the branch."""
    return Commit(id=CommitId(f"{number:040}"), subject="Change")


class Scene:
    """A follower of one cluster and what it reported."""

    def __init__(self, cluster: str = "c1", *, own_catalogue: bool = True) -> None:
        self.branch = Branch({})
        self.heard: list[BranchConfig] = []
        self.follower = ConfigFollower(
            cast("Any", self),
            ["clusters/*/sectors.yaml"],
            cluster,
            self.heard.append,
            own_catalogue=own_catalogue,
        )
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.branch, name)

    def look(
        self, files: Mapping[str, str | Exception], *older: Mapping[str, str | Exception]
    ) -> BranchConfig:
        """One commit with these files, after older ones, and what is known afterwards."""
        self.branch = Branch(files, *older)
        self.commits += 1
        self.follower.look(commit(self.commits))
        return self.heard[-1]

"""Which config of the branch the capacity loop gets, whatever lies in other folders."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from reconciler.gitops.repository.followed import Followed
from reconciler.loops.second_loop.config_follower import ConfigFollower
from reconciler.model.errors import InputError, Unavailable, UsageError
from reconciler.ports.repository import Commit, CommitId, TreeFile

OURS, THEIRS = "clusters/c1/sectors.yaml", "clusters/x/sectors.yaml"
CONFIG = "cluster: c1\nsectors: {p: {kind: memory, fleets: [{size: small, max_capacity: 3}]}}\n"
OTHER = CONFIG.replace("c1", "x")


class Branch:
    """A branch with these files; reading one that is an error raises it."""

    def __init__(self, files: Mapping[str, str | Exception]) -> None:
        self.contents = files
        self.read_paths: list[str] = []

    def files(self, _commit: CommitId) -> tuple[TreeFile, ...]:
        """Every file."""
        return tuple(
            TreeFile(path=path, blob=f"{zlib.crc32(str(content).encode()):040x}", size_bytes=1)
            for path, content in sorted(self.contents.items())
        )

    def read(self, _commit: CommitId, path: str) -> bytes:
        """The content, or the error."""
        self.read_paths.append(path)
        content = self.contents[path]
        if isinstance(content, Exception):
            raise content
        return content.encode()

    def last_change(self, commit: CommitId, _paths: Sequence[str], *, deep: bool) -> Commit:
        """The commit itself."""
        del deep
        return Commit(id=commit, subject="Change")

    def changes(self, commit: CommitId, _path: str, _commits_max: int) -> tuple[CommitId, ...]:
        """No history."""
        return (commit,)


def commit(number: int) -> Commit:
    """One commit of the branch."""
    return Commit(id=CommitId(f"{number:040}"), subject="Change")


class Scene:
    """A follower of one cluster and what it reported."""

    def __init__(self, cluster: str = "c1") -> None:
        self.branch = Branch({})
        self.heard: list[Followed] = []
        self.follower = ConfigFollower(
            cast("Any", self), ["clusters/*/sectors.yaml"], cluster, self.heard.append
        )
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.branch, name)

    def look(self, files: Mapping[str, str | Exception]) -> Followed:
        """One commit with these files, and what is known afterwards."""
        self.branch = Branch(files)
        self.commits += 1
        self.follower.look(commit(self.commits))
        return self.heard[-1]


@pytest.mark.parametrize(
    "error",
    [
        InputError(THEIRS, "5400000 bytes, more than the limit of 4194304"),
        UsageError("path", "'clusters/x\\ny/sectors.yaml' is not a path inside the repository"),
        ValueError("odd"),
    ],
)
def test_unreadable_config_of_another_folder_stops_no_capacity_loop(error: Exception) -> None:
    """One team's odd file would keep every cluster of the repository from new limits."""
    scene = Scene()
    found = scene.look({OURS: CONFIG, THEIRS: error})
    assert (found.trouble, found.config and found.config.path) == ("", OURS)
    found = scene.look({OURS: CONFIG.replace("3", "4"), THEIRS: error})
    assert found.config is not None
    assert b"max_capacity: 4" in found.config.content


def test_unreadable_config_is_nobodys_first_choice() -> None:
    """It may be this cluster's own: another folder's config must not take its place."""
    scene = Scene()
    nameless = CONFIG.partition("\n")[2]
    before = scene.look({OURS: CONFIG, THEIRS: nameless})
    error = InputError(OURS, "5400000 bytes, more than the limit of 4194304")
    found = scene.look({OURS: error, THEIRS: nameless})
    assert found.config == before.config
    assert "5400000 bytes" in found.trouble


def test_copy_that_cannot_be_read_leaves_the_original_its_name() -> None:
    """Both have the same content, and so the same blob in git."""
    scene = Scene()
    path = "clusters/b\nad/sectors.yaml"

    class OddPath(Branch):
        def read(self, commit: CommitId, path: str) -> bytes:
            if "\n" in path:
                raise UsageError("path", "is not a path inside the repository")
            return super().read(commit, path)

    scene.branch = OddPath({OURS: CONFIG, path: CONFIG})
    for number in (1, 2):
        scene.follower.look(commit(number))
        assert scene.heard[-1].config is not None
        assert scene.heard[-1].config.path == OURS
        assert scene.heard[-1].trouble == ""


def test_bug_with_its_own_config_is_said_and_the_last_one_stays() -> None:
    """The second loop's process would end again and again, for all clusters."""
    scene = Scene()
    before = scene.look({OURS: CONFIG, THEIRS: OTHER})
    found = scene.look({OURS: ValueError("odd"), THEIRS: OTHER})
    assert found.config == before.config
    assert "ValueError: odd" in found.trouble


def test_server_that_does_not_answer_is_asked_again_for_the_same_commit() -> None:
    """Otherwise a short outage would hide a commit until the next one."""
    scene = Scene()
    scene.branch = Branch({OURS: Unavailable("remote", "no answer")})
    scene.follower.look(commit(1))
    assert "no answer" in scene.heard[-1].trouble
    scene.branch = Branch({OURS: CONFIG})
    scene.follower.look(commit(1))
    assert scene.heard[-1].config is not None


def test_unchanged_configs_of_other_folders_are_not_read_again() -> None:
    """A repository of fifty clusters would cost fifty reads per commit."""
    scene = Scene()
    scene.look({OURS: CONFIG, THEIRS: OTHER})
    scene.look({OURS: CONFIG.replace("3", "4"), THEIRS: OTHER})
    assert set(scene.branch.read_paths) == {OURS}

"""The Repository port over real git and real (bare, local) remotes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    ToolError,
    Unavailable,
    UsageError,
)
from reconciler.ports.repository import FileChange
from tests.git_remote import GIT_TIMEOUT_SECONDS, git, write_and_push


@pytest.fixture
def url(work: Path) -> str:
    """The remote's address."""
    return str(work.parent / "remote.git")


@pytest.fixture
def repository(url: str) -> Iterator[GitRepository]:
    """The port under test, following main."""
    port = GitRepository(GitSettings(url=url))
    yield port
    port.close()


def test_fetch_of_a_branch_returns_its_newest_commit(repository: GitRepository, work: Path) -> None:
    """A loop that reads an old commit renders yesterday's config."""
    newest = write_and_push(work, "sectors.yaml", "cluster: two\n", "Second: äöü")
    tip = repository.fetch()
    assert (tip.id, tip.subject) == (newest, "Second: äöü")
    assert repository.read(tip.id, "sectors.yaml") == b"cluster: two\n"
    assert [file.path for file in repository.files(tip.id)] == ["sectors.yaml"]


def test_read_of_a_missing_file_is_not_found(repository: GitRepository) -> None:
    """A missing config must be distinguished from an unreachable remote."""
    with pytest.raises(NotFound):
        repository.read(repository.fetch().id, "elsewhere.yaml")


def test_read_of_a_symbolic_link_is_refused(repository: GitRepository, work: Path) -> None:
    """A link in the repository must not make the loop read files of its own machine."""
    (work / "link.yaml").symlink_to("/etc/hostname")
    git(work, "add", "link.yaml")
    git(work, "commit", "-qm", "Link")
    git(work, "push", "-q", "origin", "HEAD:main")
    tip = repository.fetch()
    with pytest.raises(InputError, match="is a symbolic link"):
        repository.read(tip.id, "link.yaml")
    assert [file.path for file in repository.files(tip.id)] == ["sectors.yaml"]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".git/config", "a/../b", "a//b", "", "."])
def test_path_that_leaves_the_repository_is_refused(repository: GitRepository, path: str) -> None:
    """A hostile output path must not reach outside the repository or into git's files."""
    with pytest.raises(UsageError):
        repository.commit(repository.fetch().id, [FileChange(path=path, content=b"x")], "M")


def test_commit_changes_the_named_files_only(repository: GitRepository, work: Path) -> None:
    """Touching anybody else's file would destroy their work."""
    write_and_push(work, "terraform/own.tf", "# theirs\n", "Own file")
    write_and_push(work, "terraform/old.tf", "# ours once\n", "Old file")
    tip = repository.fetch()
    changes = [
        FileChange(path="terraform/main.tf", content=b"# rendered\n"),
        FileChange(path="terraform/old.tf", content=None),
    ]
    made = repository.commit(tip.id, changes, "Render\n\nFleet-Reconciler-Config: abc\n")
    assert made is not None
    repository.push(made.id)
    git(work, "pull", "-q", "origin", "main")
    assert git(work, "ls-files") == "sectors.yaml\nterraform/main.tf\nterraform/own.tf"
    assert made.trailers("Fleet-Reconciler-Config") == ("abc",)
    assert git(work, "log", "-1", "--format=%an <%ae>") == (
        "fleet-reconciler <fleet-reconciler@localhost>"
    )


def test_commit_of_what_is_there_already_makes_nothing(repository: GitRepository) -> None:
    """A commit without a change would wake the pipeline for nothing, forever."""
    tip = repository.fetch()
    same = [
        FileChange(path="sectors.yaml", content=b"cluster: one\n"),
        FileChange(path="never-there", content=None),
    ]
    assert repository.commit(tip.id, same, "Nothing") is None


def test_commit_made_twice_has_the_same_name(url: str) -> None:
    """Two replicas that decide alike must not race each other with twin commits."""
    names = []
    for _ in range(2):
        port = GitRepository(GitSettings(url=url))
        made = port.commit(port.fetch().id, [FileChange(path="a", content=b"x")], "Same")
        assert made is not None
        port.push(made.id)
        names.append(made.id)
        port.close()
        break_symmetry = git(Path(url), "rev-parse", "main~1")
        git(Path(url), "update-ref", "refs/heads/main", break_symmetry)
    assert names[0] == names[1]


def test_commit_below_a_file_says_what_is_in_the_way(repository: GitRepository) -> None:
    """An output directory that is a file must be reported, not replaced."""
    tip = repository.fetch()
    with pytest.raises(InputError, match="does not fit"):
        repository.commit(tip.id, [FileChange(path="sectors.yaml/main.tf", content=b"x")], "M")


def test_push_after_the_remote_moved_is_a_conflict(repository: GitRepository, work: Path) -> None:
    """Forcing here would throw away a colleague's commit."""
    made = repository.commit(
        repository.fetch().id, [FileChange(path="a", content=b"x")], "Rendered"
    )
    theirs = write_and_push(work, "README.md", "hello\n", "Theirs")
    assert made is not None
    with pytest.raises(Conflict):
        repository.push(made.id)
    assert git(work, "ls-remote", "origin", "main").split()[0] == theirs


def test_history_rewritten_at_the_remote_is_followed(repository: GitRepository, work: Path) -> None:
    """Someone else's force-push must not leave the loop on a branch that is gone."""
    repository.fetch()
    git(work, "commit", "-q", "--amend", "-m", "Rewritten")
    git(work, "push", "-q", "--force", "origin", "HEAD:main")
    assert repository.fetch().subject == "Rewritten"


def test_deleted_branch_is_not_found_and_says_so(repository: GitRepository, work: Path) -> None:
    """An operator must read which branch vanished, not a git trace."""
    repository.fetch()
    git(Path(work.parent / "remote.git"), "update-ref", "-d", "refs/heads/main")
    with pytest.raises(NotFound, match="branch main does not exist"):
        repository.fetch()


def test_missing_remote_is_not_found(tmp_path: Path) -> None:
    """A mistyped address must be reported as such."""
    port = GitRepository(GitSettings(url=str(tmp_path / "nowhere.git")))
    with pytest.raises(NotFound):
        port.fetch()
    port.close()


def test_unreachable_remote_is_unavailable() -> None:
    """A network that is down is to be retried, not given up."""
    port = GitRepository(GitSettings(url="http://127.0.0.1:9/x.git", network_timeout_seconds=20))
    with pytest.raises(Unavailable):
        port.fetch()
    port.close()


@pytest.mark.parametrize("damage", ["HEAD", "objects", "packed", "everything"])
def test_damaged_local_copy_is_fetched_anew(url: str, tmp_path: Path, damage: str) -> None:
    """A node that lost its disk half-way must not stop the loop until someone cleans up."""
    copy = tmp_path / "copy.git"
    first = GitRepository(GitSettings(url=url, directory=copy))
    tip = first.fetch()
    first.close()
    if damage == "everything":
        subprocess.run(["rm", "-rf", str(copy)], check=True, timeout=GIT_TIMEOUT_SECONDS)
    elif damage == "HEAD":
        (copy / "HEAD").write_text("garbage")
    else:
        for file in (copy / "objects").rglob("*"):
            if file.is_file():
                file.chmod(0o600)
                file.write_bytes(b"" if damage == "objects" else file.read_bytes()[:10])
    second = GitRepository(GitSettings(url=url, directory=copy))
    assert second.fetch() == tip
    assert second.read(tip.id, "sectors.yaml") == b"cluster: one\n"
    second.close()


@pytest.mark.parametrize(
    "lock", ["HEAD", "shallow", "packed-refs", "reconciler-index", "refs/remotes/origin/followed"]
)
def test_lock_of_a_killed_git_is_in_nobodys_way(url: str, tmp_path: Path, lock: str) -> None:
    """After an OOM kill every later commit would find the lock, for good."""
    copy = tmp_path / "copy.git"
    first = GitRepository(GitSettings(url=url, directory=copy))
    tip = first.fetch()
    first.close()
    (copy / f"{lock}.lock").touch()
    second = GitRepository(GitSettings(url=url, directory=copy))
    assert second.fetch() == tip
    assert second.commit(tip.id, [FileChange(path="a", content=b"x")], "Rendered")
    second.close()


def test_copy_damaged_under_our_feet_is_a_conflict_then_fetched_anew(
    url: str, tmp_path: Path
) -> None:
    """Damage between fetch and read must end in another turn, not in a crash."""
    copy = tmp_path / "copy.git"
    port = GitRepository(GitSettings(url=url, directory=copy))
    tip = port.fetch()
    subprocess.run(["rm", "-rf", str(copy / "objects")], check=True, timeout=GIT_TIMEOUT_SECONDS)
    with pytest.raises(Conflict, match="damaged"):
        port.read(tip.id, "sectors.yaml")
    assert port.fetch() == tip
    port.close()


def test_foreign_directory_is_never_wiped(url: str, tmp_path: Path) -> None:
    """A wrong --clone must not delete somebody's files."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    port = GitRepository(GitSettings(url=url, directory=tmp_path / "precious"))
    with pytest.raises(ToolError, match="no git copy of ours"):
        port.fetch()
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "years of work"
    port.close()


def test_directory_that_cannot_be_written_is_a_tool_error(url: str, tmp_path: Path) -> None:
    """A read-only or full disk must reach the operator as such, and so must a file."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ToolError, match="is a file"):
        GitRepository(GitSettings(url=url, directory=tmp_path / "file")).fetch()
    with pytest.raises(ToolError, match="cannot be written"):
        GitRepository(GitSettings(url=url, directory=tmp_path / "file" / "copy.git")).fetch()


def test_two_processes_in_one_directory_are_kept_apart(url: str, tmp_path: Path) -> None:
    """Two loops in one copy would pull each other's index away."""
    settings = GitSettings(url=url, directory=tmp_path / "copy.git")
    first = GitRepository(settings)
    with pytest.raises(ToolError, match="another process"):
        GitRepository(settings)
    first.close()
    GitRepository(settings).close()


def test_hooks_of_the_remote_template_never_run(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template directory or a global hooksPath must not run code in the loop."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    hook = hooks / "pre-push"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[core]\n\thooksPath = {hooks}\n[init]\n\ttemplateDir = {tmp_path}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    port = GitRepository(GitSettings(url=url))
    made = port.commit(port.fetch().id, [FileChange(path="a", content=b"x")], "Rendered")
    assert made is not None
    port.push(made.id)
    port.close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "variable",
    [
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DEFAULT_HASH", "GIT_DIR",
        "GIT_ICASE_PATHSPECS", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
        "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
    ],
)  # fmt: skip
def test_variables_of_another_repository_change_nothing(
    url: str, work: Path, tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook or a shell has them for its own repository, and we would write into that one."""
    other = tmp_path / "other"
    other.mkdir()
    value = "sha256" if variable == "GIT_DEFAULT_HASH" else str(other)
    port = GitRepository(GitSettings(url=url))
    with monkeypatch.context() as patch:
        patch.setenv(variable, "1" if "PATHSPECS" in variable else value)
        made = port.commit(port.fetch().id, [FileChange(path="a", content=b"x")], "Rendered")
        assert made is not None
        port.push(made.id)
        port.close()
        assert variable in os.environ  # noqa: TID251 - programs of others keep it
    assert git(work.parent / "remote.git", "rev-parse", "refs/heads/main") == made.id
    assert list(other.iterdir()) == []


def test_last_change_names_the_commit_that_changed_the_file(
    repository: GitRepository, work: Path
) -> None:
    """The rendered commit must name the config commit, not whatever came after it."""
    config = write_and_push(work, "sectors.yaml", "cluster: three\n", "Change the config")
    write_and_push(work, "README.md", "hello\n", "Unrelated")
    found = repository.last_change(repository.fetch().id, ["sectors.yaml"])
    assert found is not None
    assert (found.id, found.subject) == (config, "Change the config")


def test_last_change_beyond_the_fetched_history_is_looked_for_on_request(
    url: str, work: Path
) -> None:
    """The edge of a shallow copy looks like a commit that added everything."""
    for number in range(3):
        write_and_push(work, "README.md", f"{number}\n", f"Unrelated {number}")
    port = GitRepository(GitSettings(url=f"file://{url}", depth=2))
    tip = port.fetch().id
    assert port.last_change(tip, ["sectors.yaml"]) is None
    found = port.last_change(tip, ["sectors.yaml"], deep=True)
    assert found is not None
    assert found.subject == "First config"
    assert port.last_change(tip, ["nowhere.yaml"], deep=True) is None
    port.close()


def test_changes_beyond_the_fetched_history_are_fetched_when_they_are_asked_for(
    url: str, work: Path
) -> None:
    """The last valid version of a config may be older than fifty commits of other teams."""
    second = write_and_push(work, "sectors.yaml", "cluster: two\n", "Second config")
    for number in range(3):
        write_and_push(work, "README.md", f"{number}\n", f"Unrelated {number}")
    port = GitRepository(GitSettings(url=f"file://{url}", depth=2))
    tip = port.fetch().id
    (edge,) = port.changes(tip, ["sectors.yaml"], 20)
    assert port.read(edge, "sectors.yaml") == b"cluster: two\n"
    found = port.changes(tip, ["sectors.yaml"], 20, deep=True)
    assert [next(found), next(found)] == [edge, second]
    assert [port.describe(each).subject for each in found] == ["First config"]
    assert len(list(port.changes(tip, ["sectors.yaml", "README.md"], 2, deep=True))) == 2
    port.close()


def test_deep_look_beyond_the_limit_of_the_copy_leaves_it_usable(url: str, work: Path) -> None:
    """The history of a repository with huge files must not be fetched for a commit's name."""
    for _ in range(3):
        write_and_push(work, "big.txt", os.urandom(40_000).hex(), "Big")
    port = GitRepository(GitSettings(url=f"file://{url}", depth=2, clone_bytes_max=500_000))
    tip = port.fetch().id
    assert port.last_change(tip, ["sectors.yaml"], deep=True) is None
    assert port.read(tip, "sectors.yaml")
    port.close()


def test_oversized_file_is_refused(url: str, work: Path) -> None:
    """A config bomb must not be read into memory."""
    write_and_push(work, "sectors.yaml", "#" * 5000, "Bomb")
    port = GitRepository(GitSettings(url=url, file_bytes_max=4096))
    with pytest.raises(InputError, match="limit of 4096"):
        port.read(port.fetch().id, "sectors.yaml")
    port.close()


def test_oversized_repository_is_refused(url: str) -> None:
    """A monorepo by mistake must not fill the node's disk for good."""
    port = GitRepository(GitSettings(url=url, clone_bytes_max=10))
    with pytest.raises(ToolError, match="limit of 10"):
        port.fetch()
    port.close()


def test_address_with_a_password_is_refused_without_printing_it() -> None:
    """Arguments and logs are visible to others; a password in the address would be too."""
    with pytest.raises(UsageError) as caught:
        GitSettings(url="https://bot:hunter2@example.com/x.git")
    assert "hunter2" not in str(caught.value)


def test_token_over_plain_http_is_refused() -> None:
    """A token on the wire in clear text is a leaked token."""
    with pytest.raises(UsageError, match="plain http"):
        GitSettings(url="http://example.com/x.git", token="t0k3n-value")


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "", "x.lock", "a@{1}"])
def test_branch_that_git_would_misread_is_refused(branch: str) -> None:
    """A branch name must never be taken for an option or a range."""
    with pytest.raises(UsageError):
        GitSettings(url="x", branch=branch)


def test_remote_that_declines_the_push_is_forbidden(repository: GitRepository, url: str) -> None:
    """A protected branch needs another mode, not a retry."""
    hook = Path(url) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.touch(0o755)
    hook.write_text("#!/bin/sh\necho 'protected branch' >&2\nexit 1\n")
    made = repository.commit(repository.fetch().id, [FileChange(path="a", content=b"x")], "M")
    assert made is not None
    with pytest.raises(Forbidden):
        repository.push(made.id)

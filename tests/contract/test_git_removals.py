"""Which commits of a real branch removed files: a lost config is looked for with them."""

from pathlib import Path

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from tests.git_remote import git, write_and_push


def removed(work: Path, *paths: str) -> str:
    """A person removes files from main; the commit's name."""
    git(work, "rm", "-q", *paths)
    git(work, "commit", "-qm", "Remove")
    git(work, "push", "-q", "origin", "HEAD:main")
    return git(work, "rev-parse", "HEAD")


def test_removals_are_yielded_newest_first_with_the_commit_before(work: Path) -> None:
    """The config of the commit before is what stays in force."""
    for path in ("a/ä b.yaml", "a/c.yaml"):
        write_and_push(work, path, "x\n", f"Write {path}")
    kept = write_and_push(work, "d.yaml", "x\n", "Write another")
    first = removed(work, "a/ä b.yaml", "a/c.yaml")
    git(work, "mv", "d.yaml", "e.yaml")
    git(work, "commit", "-qm", "Move")
    git(work, "push", "-q", "origin", "HEAD:main")
    second = git(work, "rev-parse", "HEAD")
    port = GitRepository(GitSettings(url=str(work.parent / "remote.git")))
    found = [
        (removal.commit, removal.before, removal.path) for removal in port.removals(port.fetch().id)
    ]
    assert found == [
        (second, first, "d.yaml"),
        (first, kept, "a/c.yaml"),
        (first, kept, "a/ä b.yaml"),
    ]
    port.close()


def test_removal_on_a_merged_branch_is_one_of_the_merge(work: Path) -> None:
    """The branch that is followed had the file until then, perhaps in a newer version."""
    write_and_push(work, "gone.yaml", "x\n", "Write")
    git(work, "checkout", "-q", "-b", "topic")
    git(work, "rm", "-q", "gone.yaml")
    git(work, "commit", "-qm", "Remove")
    git(work, "checkout", "-q", "main")
    before = write_and_push(work, "README.md", "x\n", "Unrelated")
    git(work, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    git(work, "push", "-q", "origin", "HEAD:main")
    port = GitRepository(GitSettings(url=str(work.parent / "remote.git")))
    (found,) = port.removals(port.fetch().id)
    assert (found.commit, found.before) == (git(work, "rev-parse", "HEAD"), before)
    port.close()


def test_removal_beyond_the_fetched_history_is_fetched_when_it_is_asked_for(work: Path) -> None:
    """Weeks may pass between the removal and the restart that needs what was there."""
    write_and_push(work, "gone.yaml", "x\n", "Write")
    commit = removed(work, "gone.yaml")
    for number in range(4):
        write_and_push(work, "README.md", f"{number}\n", f"Unrelated {number}")
    port = GitRepository(GitSettings(url=f"file://{work.parent}/remote.git", depth=2))
    (found,) = port.removals(port.fetch().id)
    assert (found.commit, found.path) == (commit, "gone.yaml")
    assert port.read(found.before, "gone.yaml") == b"x\n"
    port.close()

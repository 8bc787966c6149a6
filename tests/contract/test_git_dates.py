"""Commits after one whose date is odd."""

from contextlib import closing
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.ports.repository import FileChange
from tests.git_remote import git, make_remote


@pytest.mark.parametrize(
    ("dated", "date"),
    [
        ("1700000000 +0530", "1700000000 +0530"),
        ("4102444800 -0730", "4102444800 -0730"),
        ("99999999999 +0000", "99999999999 +0000"),
        ("99999999999999999999 +0000", "0 +0000"),
        ("5 +99999", "0 +0000"),
        ("-5 +0000", "0 +0000"),
        ("yesterday", "0 +0000"),
    ],
)
def test_commit_follows_one_of_any_date(tmp_path: Path, dated: str, date: str) -> None:
    """A commit that somebody dates 2100 would stop the second loop for every cluster."""
    work = make_remote(tmp_path, {"sectors.yaml": "cluster: one\n"})
    made_by_hand = f"tree {git(work, 'rev-parse', 'HEAD^{tree}')}\nauthor Ada <a@b> 5 +0000\n"
    (work.parent / "odd").write_text(f"{made_by_hand}committer Ada <a@b> {dated}\n\nOdd\n")
    hashed = ("hash-object", "-t", "commit", "-w", "--literally", str(work.parent / "odd"))
    git(work, "push", "-q", "--force", "origin", f"{git(work, *hashed)}:main")
    with closing(GitRepository(GitSettings(url=str(tmp_path / "remote.git")))) as repository:
        tip = repository.fetch()
        made = repository.commit(
            tip.id, [FileChange(path="terraform/main.tf", content=b"#\n")], "x"
        )
        assert made is not None
        repository.push(made.id)
    git(work, "fetch", "-q", "origin")
    written = git(work, "cat-file", "-p", made.id)
    assert f"> {date}\ncommitter " in written
    assert written.partition("\n\n")[0].endswith(f"> {date}")

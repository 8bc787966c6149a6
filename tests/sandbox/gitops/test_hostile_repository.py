"""A repository whose few bytes stand for very many files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git_remote import git, make_remote
from tests.sandbox.gitops.loop_world import config, remote_of

MEMORY_MAX_BYTES = 400 * 2**20
SECONDS_MAX = 60


def _mktree(work: Path, lines: str) -> str:
    done = subprocess.run(
        ["git", "mktree"], cwd=work, input=lines, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def push_nested_trees(work: Path, *, levels: int, wide: int) -> None:
    """Push a commit of `wide ** levels` files in `levels` tree objects beside the config."""
    (work / "leaf").write_text("x\n")
    entry = f"100644 blob {git(work, 'hash-object', '-w', 'leaf')}"
    for _ in range(levels):
        lines = "".join(f"{entry}\t{'d' * 30}{number:04}\n" for number in range(wide))
        entry = f"040000 tree {_mktree(work, lines)}"
    kept = git(work, "ls-tree", "HEAD")
    root = _mktree(work, f"{kept}\n{entry}\tbomb\n")
    commit = git(work, "commit-tree", root, "-p", "HEAD", "-m", "Many files")
    git(work, "push", "-q", "origin", f"{commit}:refs/heads/main")


@pytest.mark.sandbox
@pytest.mark.parametrize(("levels", "wide"), [(6, 40), (90, 1)], ids=["wide", "deep"])
def test_nested_trees_are_refused_quickly_and_in_bounded_memory(
    tmp_path: Path, levels: int, wide: int
) -> None:
    """A few kilobytes of trees within trees took the process to 5.9 GiB."""
    work = make_remote(tmp_path, {"sectors.yaml": config(5)})
    push_nested_trees(work, levels=levels, wide=wide)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "reconciler", "gitops", "--once"),
            *("--repository", remote_of(work)),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 1, said
    assert said.startswith("error: ")
    assert "repository of their own" in said
    assert said.count("\n") == 1
    assert usage.ru_maxrss * 1024 < MEMORY_MAX_BYTES
    assert usage.ru_utime + usage.ru_stime < SECONDS_MAX

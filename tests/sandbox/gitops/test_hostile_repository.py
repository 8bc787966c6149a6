"""A repository whose few bytes stand for very many files."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.git_remote import git, make_remote
from tests.sandbox.gitops.loop_world import config, remote_of

MEMORY_MAX_BYTES = 400 * 2**20
SECONDS_MAX = 60
_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss * 1024, used.ru_utime + used.ru_stime)
sys.exit(code)
"""
"""Runs a program and prints the most memory it held (bytes) and its CPU seconds. Between the two
processes it keeps the tests' own memory out: Linux counts that of the process that starts another.
"""


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
    program = (sys.executable, "-m", "reconciler", "gitops", "--once")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *program, "--repository", remote_of(work)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert "repository of their own" in done.stderr
    assert done.stderr.count("\n") == 1
    memory_bytes, cpu_seconds = map(float, done.stdout.split())
    assert memory_bytes < MEMORY_MAX_BYTES
    assert cpu_seconds < SECONDS_MAX

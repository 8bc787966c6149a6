"""What a command needs and does not find is one line, whoever would tell it at greater length."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = "cluster: a\nregions: [us-west-2]\nsectors: {p: {kind: memory, fleets: [{size: small}]}}\n"


def reconciler(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code and standard error of a program that has imported nothing yet."""
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", *arguments],
        cwd=folder,
        env={**os.environ, **variables},  # noqa: TID251 - a child inherits ours
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stderr


def test_gitops_without_git_says_so(tmp_path: Path) -> None:
    """GitPython explains on 700 characters how to silence it."""
    code, error = reconciler(
        tmp_path, "gitops", "--once", "--repository", "r.git", PATH=str(tmp_path)
    )
    assert code == 1
    assert error == ("error: git: the git program is not on the PATH (install git 2.30 or newer)\n")


@pytest.mark.parametrize(
    ("address", "code", "line"),
    [
        ("nonsense", 2, "--dask: names no scheduler (for example tcp://HOST:8786)"),
        ("tcp://[::1", 2, "--dask: names no scheduler (for example tcp://HOST:8786)"),
        (
            "tcp://127.0.0.1:1",
            1,
            "tcp://127.0.0.1:1: no Dask scheduler answers: connection refused",
        ),
    ],
)
def test_scheduler_that_is_not_there_is_one_line(
    address: str, code: int, line: str, tmp_path: Path
) -> None:
    """Dask's client would add a traceback when it is thrown away."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "none.jsonl").write_text("")
    sweep = ("--sweep", "consolidation=true", "--dask", address)
    command = ("simulate", "good.yaml", "--demand", "none.jsonl", "--out", "out", *sweep)
    assert reconciler(tmp_path, *command) == (code, f"error: {line}\n")

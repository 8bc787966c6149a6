"""`reconciler gitops` as a process."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import command
from tests.git_remote import git, make_remote, write_and_push

pytestmark = pytest.mark.sandbox

TIMEOUT_SECONDS = 120
PROGRAM = [sys.executable, "-c", "from reconciler.cli.main import main; main()", "gitops"]
CONFIG = "cluster: one\nsectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the process needs PATH and HOME


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a config repository."""
    return make_remote(tmp_path, {"sectors.yaml": CONFIG})


def gitops(repository: str, *more: str) -> subprocess.CompletedProcess[str]:
    """One turn of the second loop."""
    return command.reconciler(
        *("gitops", "--once", "--repository", repository),
        *more,
        timeout_seconds=TIMEOUT_SECONDS,
    )


def test_once_commits_and_prints_what_it_did(work: Path) -> None:
    """A cron job reads this."""
    done = gitops(str(work.parent / "remote.git"), "--output", "json")
    assert done.returncode == 0, done.stderr
    (cluster,) = json.loads(done.stdout)["clusters"]
    assert (cluster["cluster"], cluster["state"]) == ("one", "committed")
    assert git(work.parent / "remote.git", "rev-parse", "main") == cluster["commit"]
    table = gitops(str(work.parent / "remote.git"), "--output", "table")
    assert "unchanged" in table.stdout


def test_invalid_config_exits_2_with_every_fault_and_its_place(work: Path) -> None:
    """The author must be able to fix all of it in one go."""
    write_and_push(work, "sectors.yaml", "cluster: one\nnosuch: 1\nsleep_interval: -1\n", "Break")
    done = gitops(str(work.parent / "remote.git"))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["sectors.yaml:2:1", "sectors.yaml:3:1"]


def test_config_that_cannot_be_rendered_says_why(work: Path) -> None:
    """`invalid` and exit code 2 alone send people looking for a typo that is not there."""
    write_and_push(work, "sectors.yaml", CONFIG.removeprefix("cluster: one\n"), "Forget the name")
    done = gitops(str(work.parent / "remote.git"), "--output", "table")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: sectors.yaml: cluster: the config names no cluster")


def test_pattern_that_finds_nothing_is_said(work: Path) -> None:
    """A mistyped pattern renders nothing, and without a warning the pipeline stays green."""
    done = gitops(str(work.parent / "remote.git"), "--config", "clusters/*/sectors.yaml")
    assert done.returncode == 0
    assert done.stderr == (
        "warning: no sector config is called clusters/*/sectors.yaml"
        " (* matches one directory, and ** is the same)\n"
    )


def test_link_is_named_once(work: Path) -> None:
    """`sectors.yaml: sectors.yaml: is a symbolic link` reads as if there were two files."""
    (work / "linked.yaml").symlink_to("sectors.yaml")
    git(work, "add", "--all")
    git(work, "commit", "-qm", "A link")
    git(work, "push", "-q", "origin", "HEAD:main")
    done = gitops(str(work.parent / "remote.git"), "--config", "linked.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: linked.yaml: is a symbolic link (")


def test_missing_repository_is_one_line_and_exit_1(tmp_path: Path) -> None:
    """A mistyped address must not look like a bug."""
    done = gitops(str(tmp_path / "nowhere.git"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: git fetch")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_the_watch_in_order(work: Path, number: signal.Signals, code: int) -> None:
    """A rolling update must not wait for a kill, nor end in a half-made commit."""
    remote = str(work.parent / "remote.git")
    with subprocess.Popen(
        [*PROGRAM, "--repository", remote, "--interval", "3600"],
        env=_ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        rest, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert "gitops_config_rendered" in first
    assert process.returncode == code, first + rest
    assert "Render terraform" in git(Path(remote), "log", "-1", "--format=%s", "main")


def test_ctrl_c_does_not_wait_for_a_silent_remote() -> None:
    """Whoever pressed it waited for the time limit of git."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"http://127.0.0.1:{mute.getsockname()[1]}/fleets.git"
        with (
            subprocess.Popen(
                [*PROGRAM, "--repository", address],
                env=_ENVIRONMENT,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
            mute.accept()[0],
        ):
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130, said
    assert "stop_forced" in said

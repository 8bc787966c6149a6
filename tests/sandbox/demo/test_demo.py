"""The demo as a process: interrupted it leaves nothing; without Terraform it says so."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the demo runs with what is installed here


def descendants_of_session(session: int) -> list[str]:
    """Command lines of living processes that carry the marker variable of this test."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"DEMO_MARK={session}".encode() in environment and command:
            found.append(command.replace(b"\0", b" ").decode())
    return found


@pytest.mark.skipif(
    shutil.which("terraform") is None, reason="the terraform program is not on the PATH"
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_no_process_and_no_folder(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Whoever presses Ctrl-C must not find servers and folders on the machine afterwards."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mark = os.getpid() * 100 + int(number)
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "reconciler", "demo", "--out", str(tmp_path / "report")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**_ENVIRONMENT, "TMPDIR": str(scratch), "DEMO_MARK": str(mark)},
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if re.search(r"CI plans it", line):
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=200)
    assert process.returncode in {130, 143, 1}, errors
    assert "Traceback" not in errors
    assert descendants_of_session(mark) == []
    assert list(scratch.iterdir()) == []


def test_demo_without_terraform_says_what_is_missing(tmp_path: Path) -> None:
    """A newcomer without Terraform is told what to install and what works without it."""
    for program in ("git", "env"):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / program).symlink_to(found)
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "demo", "--out", str(tmp_path / "report")],
        env={**_ENVIRONMENT, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: terraform: is not on the PATH")
    assert "validate" in done.stderr

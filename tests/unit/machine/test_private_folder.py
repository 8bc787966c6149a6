"""Folders of one process: gone with it, or with the next one when it was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.machine.private_folder import PrivateFolder

_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the process finds its libraries there
HOLDER = """
import sys
from reconciler.machine.private_folder import PrivateFolder
folder = PrivateFolder(sys.argv[1])
(folder.path / "copy").write_text("content")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory of the test's own, in which nothing is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert {path for path in tmp_path.iterdir() if path.name.startswith("fleet-")} == set()


def held_by_a_process(purpose: str) -> "tuple[subprocess.Popen[str], Path]":
    """A process that has such a folder, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, purpose],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**_ENVIRONMENT, "TMPDIR": tempfile.gettempdir()},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def kill(process: "subprocess.Popen[str]") -> None:
    """End it so that it can do nothing more."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_only_this_user_may_enter_and_it_goes_with_its_content() -> None:
    """It may hold a key."""
    folder = PrivateFolder("git")
    (folder.path / "a").mkdir()
    (folder.path / "a" / "key").write_text("secret")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.close()
    assert not folder.path.exists()
    folder.close()


def test_what_a_killed_process_left_goes_when_the_next_one_begins() -> None:
    """Restarts after a lack of memory must not fill the disk."""
    process, left = held_by_a_process("git")
    kill(process)
    assert (left / "copy").exists()
    with PrivateFolder("git"):
        assert not left.exists()


def test_folder_of_a_living_process_stays() -> None:
    """A laptop may run two commands at a time."""
    process, held = held_by_a_process("git")
    with PrivateFolder("git"), PrivateFolder("git"):
        assert (held / "copy").read_text() == "content"
    kill(process)
    with PrivateFolder("git"):
        assert not held.exists()


def test_folders_for_another_purpose_stay() -> None:
    """They have another rule for how long they stay."""
    process, left = held_by_a_process("terraform-data")
    kill(process)
    with PrivateFolder("git"):
        assert left.exists()
    with PrivateFolder("terraform-data"):
        assert not left.exists()


def test_program_that_may_have_outlived_its_process_keeps_its_folder() -> None:
    """Terraform finishes an apply whose process was killed."""
    process, left = held_by_a_process("terraform-data")
    kill(process)
    with PrivateFolder("terraform-data", outlived_seconds=60):
        assert left.exists()
    a_while_ago = left.stat().st_mtime - 61
    os.utime(left, (a_while_ago, a_while_ago))
    with PrivateFolder("terraform-data", outlived_seconds=60):
        assert not left.exists()


def test_link_with_such_a_name_is_not_followed(temporary: Path) -> None:
    """Anybody may put one into the temporary directory."""
    elsewhere = temporary / "precious"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("content")
    link, file = temporary / "fleet-reconciler-git-link", temporary / "fleet-reconciler-git-file"
    link.symlink_to(elsewhere)
    file.write_text("content")
    with PrivateFolder("git"):
        assert (elsewhere / "file").read_text() == "content"
        assert link.is_symlink()
        assert file.exists()
    link.unlink()
    file.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_folder_of_another_user_stays(temporary: Path) -> None:
    """Root may remove it, and must not."""
    theirs = temporary / "fleet-reconciler-git-theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with PrivateFolder("git"):
        assert theirs.exists()
    theirs.rmdir()

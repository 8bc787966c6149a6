"""Commits of the second loop, signed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import ToolError
from reconciler.ports.repository import CommitId, FileChange
from tests.git_remote import git

pytestmark = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not on the PATH: git signs with it"
)
AUTHOR = "fleets@example.com"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A signing key, mounted as Kubernetes mounts Secrets: readable for the group."""
    file = tmp_path / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True, timeout=120
    )
    file.chmod(0o440)
    return file


def committed(work: Path, key: Path | None) -> CommitId:
    """A commit that was pushed; its name."""
    settings = GitSettings(
        url=str(work.parent / "remote.git"), author_email=AUTHOR, signing_key_file=key
    )
    port = GitRepository(settings)
    made = port.commit(port.fetch().id, [FileChange(path="a", content=b"x")], "Rendered")
    assert made is not None
    port.push(made.id)
    port.close()
    return made.id


def test_signed_commit_verifies_against_the_public_key(work: Path, key: Path) -> None:
    """Branch rules that ask for signatures would refuse every render."""
    made = committed(work, key)
    allowed = work.parent / "allowed"
    allowed.write_text(f"{AUTHOR} {key.with_suffix('.pub').read_text()}")
    remote = work.parent / "remote.git"
    git(remote, "-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit", made)


def test_two_loops_with_one_key_make_the_same_commit(work: Path, key: Path) -> None:
    """Otherwise two replicas would race with every render."""
    assert committed(work, key) == committed_again(work, key)


def committed_again(work: Path, key: Path) -> CommitId:
    """The same decision by another loop, from the same base."""
    port = GitRepository(
        GitSettings(url=str(work.parent / "remote.git"), author_email=AUTHOR, signing_key_file=key)
    )
    base = CommitId(git(work, "rev-parse", "HEAD"))
    port.fetch()
    made = port.commit(base, [FileChange(path="a", content=b"x")], "Rendered")
    assert made is not None
    port.close()
    return made.id


def test_missing_key_is_reported_with_its_place_and_nothing_is_pushed(work: Path) -> None:
    """An unsigned commit in its stead would be refused by the forge, or worse, taken."""
    nowhere = work.parent / "nowhere"
    with pytest.raises(ToolError, match="nowhere"):
        committed(work, nowhere)
    assert git(work.parent / "remote.git", "rev-list", "--count", "main") == "1"


def test_file_that_is_no_key_is_one_line(work: Path, key: Path) -> None:
    """The wrong Secret was mounted."""
    key.chmod(0o600)
    key.write_text("not a key\n")
    with pytest.raises(ToolError) as caught:
        committed(work, key)
    assert "not a key" not in str(caught.value)

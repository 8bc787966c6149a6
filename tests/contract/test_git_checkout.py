"""The Checkout port over a work tree that a pipeline made."""

from pathlib import Path

import pytest

from reconciler.adapters.git.checkout import GitCheckout
from reconciler.model.errors import ToolError
from tests.git_remote import git, write_and_push


def test_checkout_of_another_user_is_an_error_and_not_outside_of_git(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container git refuses to read it: nothing would be planned, and nothing would be red."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    checkout = GitCheckout()
    for look in (checkout.state, checkout.files):
        with pytest.raises(ToolError, match=r"another user.*safe\.directory"):
            look(str(work))


def test_checkout_state_tells_where_and_at_which_commit(work: Path, tmp_path: Path) -> None:
    """A plan is bound to the commit, and its status is named by the directory."""
    (work / "clusters").mkdir()
    state = GitCheckout().state(str(work / "clusters"))
    assert state is not None
    assert (state.commit, state.subject) == (git(work, "rev-parse", "HEAD"), "First config")
    assert state.prefix == "clusters"
    assert GitCheckout().state(str(tmp_path)) is None


def test_message_of_a_commit_that_is_not_utf8_can_be_shown(work: Path, tmp_path: Path) -> None:
    """A commit that another program than git made would end `ci plan` with a traceback."""
    author = b"A <a@example.com> 1 +0000"
    tree = git(work, "write-tree").encode()
    made = b"tree %s\nauthor %s\ncommitter %s\n\nGr\xfc\xdfe\n" % (tree, author, author)
    (tmp_path / "commit").write_bytes(made)
    name = git(work, "hash-object", "-t", "commit", "-w", str(tmp_path / "commit"))
    git(work, "reset", "-q", "--soft", name)
    state = GitCheckout().state(str(work))
    assert state is not None
    assert state.subject == "Gr\ufffd\ufffde"


def test_content_at_a_commit_is_every_byte_of_the_file(work: Path) -> None:
    """A comment in Latin-1 would be a traceback instead of a fault of the config."""
    (work / "sectors.yaml").write_bytes(b"cluster: one # Gr\xfc\xdfe\n\n")
    git(work, "commit", "-qam", "Greet")
    before = GitCheckout().content_at(str(work), "HEAD", "sectors.yaml")
    assert before == b"cluster: one # Gr\xfc\xdfe\n\n"


def test_commit_that_is_not_there_is_distinguished_from_one_without_the_file(work: Path) -> None:
    """A mistyped base was taken for one without a config: everything seemed to wait longer."""
    checkout = GitCheckout()
    for revision, there in (("HEAD", True), ("main", True), ("HEAD~9", False), ("mian", False)):
        assert checkout.content_at(str(work), revision, "nothing.yaml") is None
        assert checkout.has_commit(str(work), revision) is there


def test_directory_that_is_not_there_is_outside_of_git(tmp_path: Path) -> None:
    """`the git program is missing` would send people to their image."""
    nowhere = str(tmp_path / "nowhere")
    assert GitCheckout().state(nowhere) is None
    assert GitCheckout().files(nowhere) == ()
    assert GitCheckout().changed_since(nowhere, "HEAD") is None


def test_commit_is_found_whatever_files_are_called(work: Path) -> None:
    """A file that is called like a branch must not make every cluster look changed."""
    before = git(work, "rev-parse", "HEAD")
    git(work, "branch", "topic")
    write_and_push(work, "topic", "a file\n", "A file like a branch")
    assert GitCheckout().changed_since(str(work), "topic") == frozenset({"topic"})
    assert GitCheckout().changed_since(str(work), before) == frozenset({"topic"})


def test_no_program_of_an_embedded_repository_runs(tmp_path: Path) -> None:
    """Git takes a folder that looks like a bare repository for one, and its config with it."""
    git(tmp_path, "init", "-q", "-b", "main", "checkout")
    folder = tmp_path / "checkout" / "terraform"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(folder))
    marker, program = tmp_path / "ran", tmp_path / "checkout" / "gpg"
    program.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    program.chmod(0o755)
    git(folder, "config", "log.showSignature", "true")
    git(folder, "config", "gpg.program", str(program))
    tree = git(folder, "write-tree")
    signed = (
        f"tree {tree}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nSigned\n"
    )
    (tmp_path / "commit").write_text(signed)
    name = git(folder, "hash-object", "-t", "commit", "-w", str(tmp_path / "commit"))
    git(folder, "update-ref", "refs/heads/main", name)
    marker.unlink(missing_ok=True)
    GitCheckout().state(str(folder))
    GitCheckout().changed_since(str(folder), "main")
    assert not marker.exists()

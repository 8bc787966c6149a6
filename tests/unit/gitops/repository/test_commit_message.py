"""What the loop's commits say and how it knows its own again."""

import pytest

from reconciler.gitops.repository.commit_message import (
    commit_message,
    is_own,
    output_digest,
    request_body,
    why_not_again,
)
from reconciler.ports.repository import Commit, CommitId
from tests.unit.gitops.reports import OUTPUT, source


def there() -> str:
    """The files at the tip are those of the last render."""
    return OUTPUT


def made_by(version: str, blob: str = "b10b") -> Commit:
    """The commit that a loop of a version made."""
    message = commit_message(source(version, blob))
    return Commit(id=CommitId("c" * 40), subject=message.splitlines()[0], message=message.strip())


def test_message_names_config_commit_and_its_subject() -> None:
    """A reader of the log must find the human change behind a rendered one."""
    message = commit_message(source())
    assert message.splitlines()[0] == "Render terraform from sectors.yaml at aaaaaaaaaaaa"
    assert "Config commit: aaaaaaaaaaaa Raise the limit" in message
    assert f"Fleet-Reconciler-Config: {'a' * 40}" in message
    assert is_own(made_by("1.2.0"))


def test_foreign_subject_cannot_add_a_trailer() -> None:
    """A crafted subject must not make the loop take a stranger's data for its own."""
    evil = Commit(
        id=CommitId("a" * 40), subject="x\n\nFleet-Reconciler-Version: 99\r\n\x1b[31m" + "y" * 500
    )
    message = commit_message(source(commit=evil))
    found = Commit(id=CommitId("d" * 40), subject="", message=message)
    assert found.trailers("Fleet-Reconciler-Version") == ("1.2.0",)
    assert max(map(len, message.splitlines())) < 150
    assert "\x1b" not in message


@pytest.mark.parametrize(
    "marker",
    [
        "[skip ci]",
        "[ci skip]",
        "[no ci]",
        "[skip actions]",
        "[actions skip]",
        "[Skip CI]",
        "[ci-skip]",
        "[skip  ci]",
    ],
)
def test_subject_cannot_keep_the_pipeline_from_the_render(marker: str) -> None:
    """Forges obey the marker wherever it stands in a message: nothing would plan the render."""
    commit = Commit(id=CommitId("a" * 40), subject=f"Docs only {marker}")
    for text in (commit_message(source(commit=commit)), request_body(source(commit=commit))):
        assert "[" not in text
        assert f"Docs only ({' '.join(marker[1:-1].split())})" in text
    kept = Commit(id=CommitId("a" * 40), subject="[infra] no cider [x] skip ci")
    assert kept.subject in commit_message(source(commit=kept))


def test_commit_of_a_person_is_not_own() -> None:
    """Overwriting rendered files by hand must be mended, not taken for a peer's render."""
    quoting = "Revert\n\nThis reverts the commit with\nFleet-Reconciler-Config: x\n\nBecause."
    person = Commit(id=CommitId("e" * 40), subject="Revert", message=quoting)
    assert not is_own(person)
    assert why_not_again(source(), person, there) is None


def test_newer_version_may_render_the_same_config_again() -> None:
    """After an upgrade the rendered files must follow the new templates."""
    assert why_not_again(source("1.10.0"), made_by("1.9.0"), there) is None


def test_older_version_leaves_the_newer_render() -> None:
    """During a rolling upgrade two versions must not commit against each other for ever."""
    assert "newer version 1.10.0" in (
        why_not_again(source("1.9.0"), made_by("1.10.0"), there) or ""
    )


def test_same_version_with_another_outcome_is_held() -> None:
    """Two loops with different options must be noticed, not fill the history."""
    assert "different options" in (why_not_again(source(), made_by("1.2.0"), there) or "")


def test_commit_that_people_edited_is_rendered_again() -> None:
    """A reviewer's edit that was squashed or amended would stay in force without a word."""
    last = made_by("1.2.0")
    edited = output_digest({"terraform/main.tf": b"# quick fix"})
    assert why_not_again(source(), last, lambda: edited) is None
    assert "newer version" in (why_not_again(source("1.1.0"), last, lambda: edited) or "")


def test_commit_without_a_digest_is_a_render_as_it_is() -> None:
    """Versions that wrote none made it: two loops must not begin to fight at an update."""
    lines = made_by("1.2.0").message.splitlines()
    message = "\n".join(line for line in lines if not line.startswith("Fleet-Reconciler-Output"))
    older = Commit(id=CommitId("c" * 40), subject="Render", message=message)
    assert "different options" in (why_not_again(source(), older, lambda: "another") or "")


def test_digest_is_of_paths_and_contents() -> None:
    """A file that was moved or removed is an edit, too."""
    files = {"a": b"1", "b": b"2"}
    others = [{"a": b"1"}, {"a": b"2", "b": b"1"}, {"a": b"1", "c": b"2"}, {"a": b"1b2"}]
    digests = {output_digest(each) for each in (files, dict(reversed(files.items())), *others)}
    assert len(digests) == 1 + len(others)


def test_changed_config_is_always_rendered() -> None:
    """The guard against fights must never hold back a real change."""
    assert why_not_again(source(blob="new"), made_by("9.0.0", blob="old"), there) is None


def test_unknown_last_change_is_rendered() -> None:
    """At the edge of a shallow history the loop must go on."""
    assert why_not_again(source(), None, there) is None


def test_forged_version_is_older_than_any() -> None:
    """Python refuses to read a number of 5000 digits: one commit would end the second loop."""
    assert why_not_again(source(), made_by("9" * 5000), there) is None
    assert why_not_again(source(), made_by("no version"), there) is None


def test_long_version_is_told_in_short() -> None:
    """The trailer is a stranger's text, and the message is logged at every turn."""
    assert len(why_not_again(source(), made_by("99 " + "x" * 5000), there) or "") < 200

"""What the loop's commits say and how it knows its own again."""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.commit_message import (
    RenderSource,
    commit_message,
    is_own,
    output_digest,
    request_body,
    review_branch,
    why_not_again,
)
from reconciler.ports.repository import Commit, CommitId
from tests.unit.gitops.reports import OUTPUT, source


def there() -> str:
    """The files at the tip are those of the last render."""
    return OUTPUT


def why_not(
    render: RenderSource,
    last: Commit | None,
    output_there: Callable[[], str] = there,
    files: Collection[str] = ("sectors.yaml",),
) -> str | None:
    """Why a render is held, on a branch with these files."""
    return why_not_again(render, last, output_there, lambda path: path in files)


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


def test_other_words_in_brackets_stay_in_the_message() -> None:
    """People find their commit by its subject."""
    kept = Commit(id=CommitId("a" * 40), subject="[infra] no cider [x] skip ci")
    assert kept.subject in commit_message(source(commit=kept))


def test_commit_of_a_person_is_not_own() -> None:
    """Overwriting rendered files by hand must be fixed, not taken for a peer's render."""
    quoting = "Revert\n\nThis reverts the commit with\nFleet-Reconciler-Config: x\n\nBecause."
    person = Commit(id=CommitId("e" * 40), subject="Revert", message=quoting)
    assert not is_own(person)
    assert why_not(source(), person, there) is None


def test_newer_version_may_render_the_same_config_again() -> None:
    """After an upgrade the rendered files must follow the new templates."""
    assert why_not(source("1.10.0"), made_by("1.9.0"), there) is None


def test_older_version_leaves_the_newer_render() -> None:
    """During a rolling upgrade two versions must not commit against each other for ever."""
    assert "newer version 1.10.0" in (why_not(source("1.9.0"), made_by("1.10.0"), there) or "")


def test_same_version_with_another_outcome_is_held() -> None:
    """Two loops with different options must be noticed, not fill the history."""
    assert "different options" in (why_not(source(), made_by("1.2.0"), there) or "")


def test_commit_that_people_edited_is_rendered_again() -> None:
    """A reviewer's edit that was squashed or amended would stay in force without a word."""
    last = made_by("1.2.0")
    edited = output_digest({"terraform/main.tf": b"# quick fix"})
    assert why_not(source(), last, lambda: edited) is None
    assert "newer version" in (why_not(source("1.1.0"), last, lambda: edited) or "")


def test_commit_without_a_digest_is_a_render_as_it_is() -> None:
    """Versions that wrote none made it: two loops must not begin to fight at an update."""
    lines = made_by("1.2.0").message.splitlines()
    message = "\n".join(line for line in lines if not line.startswith("Fleet-Reconciler-Output"))
    older = Commit(id=CommitId("c" * 40), subject="Render", message=message)
    assert "different options" in (why_not(source(), older, lambda: "another") or "")


def test_digest_is_of_paths_and_contents() -> None:
    """A file that was moved or removed is an edit, too."""
    files = {"a": b"1", "b": b"2"}
    others = [{"a": b"1"}, {"a": b"2", "b": b"1"}, {"a": b"1", "c": b"2"}, {"a": b"1b2"}]
    digests = {output_digest(each) for each in (files, dict(reversed(files.items())), *others)}
    assert len(digests) == 1 + len(others)


def test_changed_config_is_always_rendered() -> None:
    """The guard against fights must never hold back a real change."""
    assert why_not(source(blob="new"), made_by("9.0.0", blob="old"), there) is None


def test_unknown_last_change_is_rendered() -> None:
    """At the edge of a shallow history the loop must go on."""
    assert why_not(source(), None, there) is None


def test_forged_version_is_older_than_any() -> None:
    """Python refuses to read a number of 5000 digits: one commit would end the second loop."""
    assert why_not(source(), made_by("9" * 5000), there) is None
    assert why_not(source(), made_by("no version"), there) is None


def test_long_version_is_reported_in_short() -> None:
    """The trailer is a stranger's text, and the message is logged at every turn."""
    assert len(why_not(source(), made_by("99 " + "x" * 5000), there) or "") < 200


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.2.0rc1", "0.2.0"),
        ("0.2.0rc1", "0.2.0rc2"),
        ("0.2.0b3", "0.2.0rc1"),
        ("0.2.0.dev4", "0.2.0a1"),
        ("0.1.9", "0.2.0rc1"),
        ("0.2.0-rc.1", "0.2.0"),
    ],
)
def test_release_is_newer_than_what_preceded_it(older: str, newer: str) -> None:
    """Its render was held as that of the same version, until somebody edited the config."""
    assert why_not(source(newer), made_by(older)) is None
    assert "newer version" in (why_not(source(older), made_by(newer)) or "")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.1.0+build.1", "0.1.0+build.2"),
        ("0.1.0+9", "0.1.0+10"),
        ("0.1.0", "0.1.0+build.1"),
        ("0.1.0", "0.1.0.post1"),
        ("0.1.0.post1", "0.1.0.post2"),
        ("0.1.0.post1", "0.1.1"),
        ("1.2.3", "1.2.3.1"),
        ("1.2.3.9", "1.3"),
    ],
)
def test_newer_build_or_post_release_renders_the_same_config_again(older: str, newer: str) -> None:
    """It was called an older one, and every config whose render differs was held until its edit."""
    assert why_not(source(newer), made_by(older)) is None
    assert f"by the newer version {newer}" in (why_not(source(older), made_by(newer)) or "")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("0.1.0+1a2b", "0.1.0+9f0c"),
        ("0.1.0+a.1", "0.1.0+b.1"),
        ("1.2", "1.2.0"),
        ("1.2+1", "1.2+1.1"),
    ],
)
def test_builds_without_an_order_are_held_as_builds_of_one_version(ours: str, theirs: str) -> None:
    """Commits name no order: two of them would overwrite each other's render for ever."""
    for one, other in ((ours, theirs), (theirs, ours)):
        why = why_not(source(one), made_by(other)) or ""
        assert f"by another build of the same version, {other}" in why


def test_name_of_a_build_of_ones_own_is_no_release_candidate() -> None:
    """With a commit's name such as `1a2b` in it a build would be older than the candidates."""
    assert why_not(source("0.2.0+1a2b"), made_by("0.2.0rc1")) is None


@pytest.mark.parametrize("blob", ["b10b", "another"])
def test_output_of_another_config_of_the_branch_is_held(blob: str) -> None:
    """Two loops, each with a config of its own in one folder, overwrote each other for ever."""
    target = RenderTarget(config_path="reports.yaml", output_dir="terraform")
    ours = replace(source(blob=blob), target=target)
    both = ("reports.yaml", "sectors.yaml")
    assert "rendered it from sectors.yaml" in (why_not(ours, made_by("1.2.0"), files=both) or "")
    assert why_not(ours, made_by("1.2.0"), files=["reports.yaml"]) is None


MARKERS = (
    "[skip ci]",
    "[ci skip]",
    "[no ci]",
    "[skip actions]",
    "[actions skip]",
    "[CI Skip]",
    "[skip-ci]",
    "[ci_skip]",
)


@pytest.mark.parametrize("marker", [*MARKERS, "[skip\n\x00ci]"])
def test_render_of_a_commit_without_a_pipeline_gets_its_own(marker: str) -> None:
    """The forge planned and applied nothing of it, and nobody saw why."""
    silent = Commit(id=CommitId("a" * 40), subject=f"Raise the limit {marker}")
    folder = marker.replace("\n\x00", " ")
    target = RenderTarget(config_path=f"{folder}/sectors.yaml", output_dir=f"{folder}/terraform")
    for render in (source(commit=silent), replace(source(), target=target)):
        for text in (commit_message(render), request_body(render)):
            assert not any(each.lower() in text.lower() for each in MARKERS)
    last = commit_message(replace(source(), target=target))
    made = Commit(id=CommitId("c" * 40), subject="Render", message=last)
    assert "different options" in (why_not(replace(source(), target=target), made) or "")


def test_branch_of_the_only_config_is_named_by_the_commit_and_others_by_their_path_too() -> None:
    """Pipelines look for the first; with one branch for several configs only one was proposed."""
    only = RenderTarget(config_path="sectors.yaml", output_dir="terraform")
    assert review_branch(only, "abc") == "reconciler/abc"
    others = [
        RenderTarget(config_path=f"clusters/{name}/sectors.yaml", output_dir=f"clusters/{name}/tf")
        for name in "ab"
    ]
    branches = {review_branch(render_target, "abc") for render_target in (only, *others)}
    assert len(branches) == 3

"""The second loop over a real git remote: what a turn commits, and what it leaves alone."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.loops.second_loop.gitops_loop import GitopsSettings
from reconciler.ports.repository import Commit, CommitId, FileChange
from tests.git_remote import git, write_and_push
from tests.sandbox.gitops.loop_world import (
    Loops,
    RecordingForge,
    config,
    pulled,
    remote_of,
    subjects,
    work_after_pull,
)

pytestmark = pytest.mark.sandbox


def test_first_turn_commits_the_render_and_names_the_config_commit(
    loops: Loops, work: Path
) -> None:
    """Without the name nobody finds the change behind a changed fleet."""
    head = git(work, "rev-parse", "HEAD")
    report = loops().once()
    assert [status.state for status in report.clusters] == ["committed"]
    files = pulled(work)
    assert {"README.md", "sectors.yaml", "terraform/fleets.auto.tfvars.json"} <= set(files)
    message = git(work, "log", "-1", "--format=%B")
    assert head[:12] in message.splitlines()[0]
    assert "First config" in message
    assert f"Fleet-Reconciler-Config: {head}" in message
    values = json.loads((work / "terraform" / "fleets.auto.tfvars.json").read_text())
    assert set(values["fleets"]) == {"primary-small", "primary-medium"}


def test_second_turn_without_a_change_commits_nothing(loops: Loops, work: Path) -> None:
    """A commit per poll would start a pipeline per poll."""
    loop = loops()
    loop.once()
    before = subjects(work)
    assert [s.state for s in loop.once().clusters] == ["unchanged"]
    assert [s.state for s in loops().once().clusters] == ["unchanged"]
    write_and_push(work_after_pull(work), "README.md", "more\n", "Unrelated")
    assert [s.state for s in loop.once().clusters] == ["unchanged"]
    assert subjects(work) == ["Unrelated", *before]


def test_invalid_config_keeps_the_last_good_state(loops: Loops, work: Path) -> None:
    """A typo must not empty the rendered fleets."""
    forge = RecordingForge()
    loop = loops(forge=forge)
    loop.once()
    good = (work_after_pull(work) / "terraform/fleets.auto.tfvars.json").read_bytes()
    broken = write_and_push(work, "sectors.yaml", "sectors: {a: {kind: nosuch}}\n", "Break it")
    report = loop.once()
    assert (report.exit_code, report.clusters[0].state) == (2, "invalid")
    assert report.clusters[0].problems
    assert (work_after_pull(work) / "terraform/fleets.auto.tfvars.json").read_bytes() == good
    commit, status = forge.statuses_shown[-1]
    assert (commit, status.state) == (broken, "failure")


def test_missing_config_is_reported_and_its_render_stays(loops: Loops, work: Path) -> None:
    """A deleted file is more likely a mistake than the wish to delete every fleet."""
    loop = loops()
    loop.once()
    pulled(work)
    git(work, "rm", "-q", "sectors.yaml")
    git(work, "commit", "-qm", "Oops")
    git(work, "push", "-q", "origin", "HEAD:main")
    report = loop.once()
    assert (report.exit_code, report.clusters[0].state) == (2, "missing")
    assert "terraform/main.tf" in pulled(work)


def test_one_broken_cluster_does_not_hold_up_another(loops: Loops, work: Path) -> None:
    """Teams that share a repository must not wait for each other's typos."""
    write_and_push(work, "clusters/a/sectors.yaml", config(1, "a"), "Cluster a")
    write_and_push(work, "clusters/b/sectors.yaml", "nonsense", "Cluster b")
    write_and_push(work, "clusters/c/sectors.yaml", config(1, "c"), "Cluster c")
    settings = GitopsSettings(version="1.0.0", configs=("clusters/*/sectors.yaml",))
    report = loops(settings).once()
    assert [(s.cluster, s.state) for s in report.clusters] == [
        ("a", "committed"),
        ("", "invalid"),
        ("c", "committed"),
    ]
    files = pulled(work)
    assert {"clusters/a/terraform/main.tf", "clusters/c/terraform/main.tf"} <= set(files)
    assert len([s for s in subjects(work) if s.startswith("Render")]) == 2


def test_files_that_others_put_into_the_output_stay(loops: Loops, work: Path) -> None:
    """A team's own Terraform beside ours is theirs."""
    write_and_push(work, "terraform/own.tf", "# theirs\n", "Own file")
    loops().once()
    pulled(work)
    assert (work / "terraform" / "own.tf").read_text() == "# theirs\n"


def test_file_of_a_rendered_name_that_others_wrote_is_never_overwritten(
    loops: Loops, work: Path
) -> None:
    """A team whose own Terraform lies in terraform/ would lose it to the loop's first commit."""
    write_and_push(work, "terraform/main.tf", "# theirs\n", "Own root module")
    loop = loops()
    (status,) = loop.once().clusters
    assert status.state == "invalid"
    assert "terraform/main.tf: exists and was not written by a render" in status.detail
    pulled(work)
    assert (work / "terraform" / "main.tf").read_text() == "# theirs\n"
    git(work, "mv", "terraform/main.tf", "theirs.tf")
    git(work, "commit", "-qm", "Out of the way")
    git(work, "push", "-q", "origin", "HEAD:main")
    assert loop.once().clusters[0].state == "committed"


def test_rendered_file_edited_by_hand_is_fixed(loops: Loops, work: Path) -> None:
    """The config says what should be; an edit of the output would be lost silently later."""
    loop = loops()
    loop.once()
    pulled(work)
    write_and_push(work, "terraform/fleets.auto.tfvars.json", "{}\n", "Quick fix")
    assert loop.once().clusters[0].state == "committed"
    assert "primary-small" in (
        work_after_pull(work) / "terraform/fleets.auto.tfvars.json"
    ).read_text()  # fmt: skip


def test_loops_with_different_options_do_not_fight(loops: Loops, work: Path) -> None:
    """Two loops that disagree must stop at once instead of filling the history."""
    ours = loops(GitopsSettings(version="1.0.0", cluster_name="blue"))
    theirs = loops(GitopsSettings(version="1.0.0", cluster_name="green"))
    assert ours.once().clusters[0].state == "committed"
    report = theirs.once()
    assert (report.exit_code, report.clusters[0].state) == (1, "held")
    assert ours.once().clusters[0].state == "unchanged"
    assert loops(
        GitopsSettings(version="1.1.0", cluster_name="green")
    ).once().clusters[0].state == "committed"  # fmt: skip


def test_loops_of_two_configs_in_one_folder_do_not_fight(loops: Loops, work: Path) -> None:
    """Each render would be undone by the next turn of the other loop, and every pipeline run."""
    first, second = loops(), loops(GitopsSettings(version="1.0.0", configs=("reports.yaml",)))
    assert first.once().clusters[0].state == "committed"
    pulled(work)
    write_and_push(work, "reports.yaml", config(5, "two"), "A second config")
    (held,) = second.once().clusters
    assert held.state == "held"
    assert "rendered it from sectors.yaml" in held.detail
    assert first.once().clusters[0].state == "unchanged"


class UnusableRepository(GitRepository):
    """A repository that must not be asked to commit."""

    def commit(
        self, parent: CommitId, changes: Sequence[FileChange], message: str
    ) -> Commit | None:
        """Fail the test."""
        raise AssertionError("an invalid config must never be committed")


def test_invalid_first_config_is_never_committed(loops: Loops, work: Path) -> None:
    """Half a render of a bad config is worse than none."""
    write_and_push(work, "sectors.yaml", "cluster: [", "Break it")
    port = UnusableRepository(GitSettings(url=remote_of(work)))
    assert loops(repository=port).once().exit_code == 2

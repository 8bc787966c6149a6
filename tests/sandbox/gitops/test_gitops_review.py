"""The second loop and a forge: branches under review, statuses, how far a change has come."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.gitops.repository.progress import with_live
from reconciler.loops.second_loop.gitops_loop import GitopsSettings
from reconciler.model.errors import ReconcilerError, Refused, ToolError, Unavailable
from reconciler.ports.forge import CommitStatus, PullRequest, StatusState
from reconciler.ports.repository import Commit, CommitId
from tests.git_remote import git, write_and_push
from tests.sandbox.gitops.loop_world import (
    SETTINGS,
    Loops,
    RecordingForge,
    branch_of,
    config,
    merged,
    pulled,
    remote_of,
    work_after_pull,
)

pytestmark = pytest.mark.sandbox


def test_pull_request_mode_leaves_the_branch_alone(loops: Loops, work: Path) -> None:
    """Where review is asked for, nothing may land without it."""
    head = git(work, "rev-parse", "HEAD")
    forge = RecordingForge()
    settings = GitopsSettings(version="1.0.0", mode="pull-request")
    loop = loops(settings, forge=forge)
    report = loop.once()
    branch = branch_of(head, "sectors.yaml")
    assert (report.branch, report.clusters[0].state) == (branch, "proposed")
    assert report.pull_request == "https://forge.example/1"
    assert [request[:2] for request in forge.pull_requests] == [(branch, "main")]
    remote = Path(remote_of(work))
    assert git(remote, "rev-parse", "main") == head
    assert git(remote, "rev-parse", f"{branch}~1") == head
    proposed = git(remote, "rev-parse", branch)
    assert loop.once().branch == branch
    assert git(remote, "rev-parse", branch) == proposed


def test_branch_under_review_is_not_rewritten_when_main_moves(loops: Loops, work: Path) -> None:
    """A reviewer must not find the ground moved under their comments."""
    loop = loops(GitopsSettings(version="1.0.0", mode="pull-request"))
    branch = loop.once().branch
    proposed = git(Path(remote_of(work)), "rev-parse", branch)
    write_and_push(work, "README.md", "more\n", "Unrelated")
    assert loop.once().clusters[0].state == "proposed"
    assert git(Path(remote_of(work)), "rev-parse", branch) == proposed


@pytest.mark.parametrize("how", ["squash", "merge"])
def test_render_that_differs_after_its_merge_is_proposed_anew(
    loops: Loops, work: Path, how: str
) -> None:
    """A newer program's modules would wait for ever for a review that ended long ago."""
    review = replace(SETTINGS, mode="pull-request")
    first = loops(review).once().branch
    merged(work, first, how)
    assert loops(review).once().clusters[0].state == "unchanged"
    newer = replace(review, version="1.1.0", cluster_name="renamed")
    second = loops(newer).once().branch
    merged(work, second, how)
    rendered = work / "terraform" / "fleets.auto.tfvars.json"
    fixed = rendered.read_text()
    assert '"cluster_name": "renamed"' in fixed
    write_and_push(work, "terraform/fleets.auto.tfvars.json", "{}\n", "Quick fix")
    third = loops(newer).once().branch
    merged(work, third, how)
    assert rendered.read_text() == fixed
    assert len({first, second, third}) == 3


def test_edit_of_a_reviewer_that_was_squashed_is_proposed_to_go(loops: Loops, work: Path) -> None:
    """Forges keep the trailers of a squashed commit, so it looks like a render of the loop."""
    forge = RecordingForge()
    loop = loops(replace(SETTINGS, mode="pull-request"), forge=forge)
    branch = loop.once().branch
    pulled(work)
    git(work, "fetch", "-q", "origin")
    git(work, "merge", "-q", "--squash", f"origin/{branch}")
    rendered = work / "terraform" / "fleets.auto.tfvars.json"
    ours = rendered.read_text()
    rendered.write_text(ours.replace('"spot": true', '"spot": false'))
    git(work, "add", "--all")
    _, _, title, body = forge.pull_requests[0]
    git(work, "commit", "-qm", f"{title}\n\n{body}")
    git(work, "push", "-q", "origin", "HEAD:main")
    (status,) = loop.once().clusters
    assert (status.state, status.branch != branch) == ("proposed", True)
    merged(work, status.branch, "squash")
    assert rendered.read_text() == ours
    assert loop.once().clusters[0].state == "unchanged"


@pytest.fixture
def shallow(work: Path) -> GitRepository:
    """A port that fetches three commits."""
    return GitRepository(GitSettings(url=f"file://{remote_of(work)}", depth=3))


def test_old_config_commit_is_proposed_once_however_busy_the_branch_is(
    loops: Loops, work: Path, shallow: GitRepository
) -> None:
    """A pull request that waits, or was closed, would be opened again with everybody's commits."""
    forge = RecordingForge()
    loop = loops(replace(SETTINGS, mode="pull-request"), shallow, forge)
    branch = loop.once().branch
    for number in range(5):
        write_and_push(work, "README.md", f"{number}\n", f"Unrelated {number}")
        assert loop.once().branch == branch
    assert {request[0] for request in forge.pull_requests} == {branch}


def test_status_of_an_old_config_is_not_shown_with_every_commit(loops: Loops, work: Path) -> None:
    """Fifty clusters that nobody changes would cost fifty calls for each commit of anybody."""
    write_and_push(work, "big.txt", os.urandom(40_000).hex(), "Too big for a longer history")
    url = f"file://{remote_of(work)}"
    shallow = GitRepository(GitSettings(url=url, depth=3, clone_bytes_max=400_000))
    forge = RecordingForge()
    loop = loops(repository=shallow, forge=forge)
    for number in range(5):
        write_and_push(work_after_pull(work), "README.md", f"{number}\n", f"Unrelated {number}")
        loop.once()
    write_and_push(work_after_pull(work), "sectors.yaml", "nonsense", "Break it")
    for number in range(5):
        loop.once()
        write_and_push(work_after_pull(work), "README.md", f"again {number}\n", "Unrelated")
    assert [status.state for _, status in forge.statuses_shown] == ["success", "failure"]


@pytest.mark.parametrize("failure", [Unavailable("forge", "down"), ToolError("token", "gone")])
def test_forge_that_fails_does_not_stop_the_commit(loops: Loops, failure: ReconcilerError) -> None:
    """A forge outage, or a lost token, must not keep the config from being rendered."""
    loop = loops(forge=RecordingForge(failure))
    assert loop.once().clusters[0].state == "committed"
    assert loop.once().unshown == (str(failure),)


def test_pull_request_that_could_not_be_opened_is_opened_next_turn(
    loops: Loops, work: Path
) -> None:
    """A branch that was pushed while the forge was down must not wait for ever unseen."""
    forge = RecordingForge(Unavailable("forge", "down"))
    loop = loops(replace(SETTINGS, mode="pull-request"), forge=forge)
    with pytest.raises(Unavailable):
        loop.once()
    forge.recover()
    assert loop.once().pull_request == "https://forge.example/1"
    assert [branch for branch, *_ in forge.pull_requests] == [loop.once().branch]


class PickyForge(RecordingForge):
    """A forge that takes no pull request from one branch."""

    refused: str = ""

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Refuse the first branch that is asked about, then and later."""
        self.refused = self.refused or branch
        if branch == self.refused:
            raise Refused("forge", "not this one")
        return super().open_pull_request(branch, base, title, body)


def test_pull_request_that_is_refused_holds_up_no_other(loops: Loops, work: Path) -> None:
    """One branch that a forge does not like would keep every other team from its review."""
    settings = replace(SETTINGS, mode="pull-request", configs=("clusters/*/sectors.yaml",))
    heads = [
        write_and_push(work, f"clusters/{name}/sectors.yaml", config(5, name), f"Add {name}")
        for name in ("a", "b")
    ]
    forge = PickyForge()
    with pytest.raises(Refused):
        loops(settings, forge=forge).once()
    expected = branch_of(heads[1], "clusters/b/sectors.yaml")
    assert [branch for branch, *_ in forge.pull_requests] == [expected]


def test_review_that_people_closed_is_reported_until_it_is_reopened(
    loops: Loops, work: Path
) -> None:
    """The capacity loop runs with a config that nobody renders; its branch must stay away."""
    forge = RecordingForge()
    review = replace(SETTINGS, mode="pull-request")
    loop = loops(review, forge=forge)
    branch, remote = loop.once().branch, Path(remote_of(work))
    forge.closed.add(branch)
    git(remote, "branch", "-D", branch)
    said = "its pull request 1 was closed: reopen it, or change the config"
    for gitops_loop, unrelated in ((loop, ""), (loop, "more\n"), (loops(review, forge=forge), "")):
        if unrelated:
            write_and_push(work, "README.md", unrelated, "Unrelated")
        report = gitops_loop.once()
        (status,), (progress,) = report.clusters, report.progress
        assert (status.state, status.detail, report.exit_code) == ("held", said, 1)
        assert (progress.stage, progress.detail) == ("configured", said)
        assert forge.statuses_shown[-1][1].description == said
        assert forge.statuses_shown[-1][1].state == "failure"
        assert not git(remote, "branch", "--list", branch)
    forge.closed.clear()
    assert loop.once().clusters[0].state == "proposed"
    assert git(remote, "branch", "--list", branch)
    assert len(forge.pull_requests) == 1


def test_status_is_shown_once_and_again_after_a_failure(loops: Loops, work: Path) -> None:
    """Fifty clusters must not cost fifty calls a poll, nor an outage a status for ever."""
    forge = RecordingForge(Unavailable("forge", "down"))
    loop = loops(forge=forge)
    assert loop.once().unshown == ("forge: down",)
    forge.recover()
    for _ in range(3):
        assert loop.once().unshown == ()
    write_and_push(work_after_pull(work), "README.md", "more\n", "Unrelated")
    loop.once()
    assert [status.description for _, status in forge.statuses_shown] == ["unchanged"]


def test_progress_follows_the_pipeline_to_the_apply(loops: Loops, work: Path) -> None:
    """`is my change live?` must have an answer without opening five pages."""
    forge = RecordingForge()
    loop = loops(forge=forge)

    def stage() -> tuple[str, str]:
        (progress,) = loop.once().progress
        return progress.stage, progress.detail

    assert stage() == ("rendered", "waits for the pipeline's plan")
    render = CommitId(git(work.parent / "remote.git", "rev-parse", "main"))
    for check, state, expected in (
        ("plan", "pending", ("rendered", "waits for the pipeline's plan")),
        ("plan", "failure", ("rendered", "the plan failed or was refused: see its job")),
        ("plan", "success", ("planned", "waits for its approval")),
        ("apply", "pending", ("planned", "is being applied")),
        ("apply", "failure", ("planned", "the apply failed: see the pipeline")),
        ("apply", "success", ("applied", "")),
    ):
        context, told = f"fleet-reconciler/{check}/terraform", cast("StatusState", state)
        forge.set_status(render, CommitStatus(context=context, state=told, description=""))
        assert stage() == expected
    write_and_push(work_after_pull(work), "sectors.yaml", config(9), "Change it")
    assert stage()[0] == "rendered"


def test_progress_is_found_on_a_later_commit_of_the_same_push(loops: Loops, work: Path) -> None:
    """Pipelines run for the last commit of a push, which may be another cluster's."""
    forge = RecordingForge()
    loop = loops(forge=forge)
    loop.once()
    later = CommitId(write_and_push(work_after_pull(work), "README.md", "more\n", "Later"))
    context = "fleet-reconciler/apply/terraform"
    forge.set_status(later, CommitStatus(context=context, state="success", description=""))
    assert loop.once().progress[0].stage == "applied"


def test_progress_of_an_old_render_is_what_it_came_to(
    loops: Loops, work: Path, shallow: GitRepository
) -> None:
    """Clusters that nobody changed for long would all seem to wait for a plan."""
    forge = RecordingForge()
    loop = loops(repository=shallow, forge=forge)
    loop.once()
    render = CommitId(git(work.parent / "remote.git", "rev-parse", "main"))
    context = "fleet-reconciler/apply/terraform"
    forge.set_status(render, CommitStatus(context=context, state="success", description=""))
    for number in range(5):
        write_and_push(work_after_pull(work), "README.md", f"{number}\n", f"Unrelated {number}")
    assert loop.once().progress[0].stage == "applied"
    again = GitRepository(GitSettings(url=f"file://{remote_of(work)}", depth=3))
    assert loops(repository=again, forge=forge).once().progress[0].stage == "applied"


def test_change_of_one_region_waits_for_no_plan_of_the_other(loops: Loops, work: Path) -> None:
    """The pipeline plans only what changed, so the config would be `rendered` for ever."""
    terraform = (
        "terraform: {ami: ami-0aa, security_group_id: sg-0aa,"
        " private_subnet_ids: {us-west-2a: subnet-1}, by_region: {us-east-1: {ami: AMI,"
        " security_group_id: sg-0bb, private_subnet_ids: {us-east-1a: subnet-2}}}}\n"
    )
    both = f"{config(5)}regions: [us-west-2, us-east-1]\n{terraform}"
    forge = RecordingForge()
    loop = loops(forge=forge)

    def pipeline(*roots: str) -> None:
        """Plan and apply these root modules at the newest commit."""
        head = CommitId(git(work.parent / "remote.git", "rev-parse", "main"))
        for context in [f"fleet-reconciler/{s}/{r}" for r in roots for s in ("plan", "apply")]:
            forge.set_status(head, CommitStatus(context=context, state="success", description=""))

    def stages() -> list[tuple[str, str]]:
        return [
            (cluster_progress.stage, cluster_progress.detail)
            for cluster_progress in loop.once().progress
        ]

    write_and_push(work, "sectors.yaml", both.replace("AMI", "ami-0bb"), "Two regions")
    loop.once()
    pipeline("terraform", "terraform-us-east-1")
    assert stages() == [("applied", "")]
    new_image = both.replace("AMI", "ami-0cc")
    write_and_push(work_after_pull(work), "sectors.yaml", new_image, "New image there")
    loop.once()
    waits = ("rendered", "terraform-us-east-1: waits for the pipeline's plan")
    assert stages() == [waits]
    pipeline("terraform-us-east-1")
    assert stages() == [("applied", "")]


class ShortRepository(GitRepository):
    """A repository whose remote gives no older history."""

    def last_change(
        self, commit: CommitId, paths: Sequence[str], *, deep: bool = False
    ) -> Commit | None:
        """Fail where the remote would be asked."""
        found = super().last_change(commit, paths)
        if deep and found is None:
            raise Unavailable("git fetch", "no answer")
        return found


def test_progress_that_cannot_be_reported_fails_no_turn(loops: Loops, work: Path) -> None:
    """The commit is pushed by then, and would be reported as a failure."""
    loops().once()
    for number in range(4):
        write_and_push(work_after_pull(work), "README.md", f"{number}\n", f"Unrelated {number}")
    short = ShortRepository(GitSettings(url=f"file://{remote_of(work)}", depth=3))
    report = loops(repository=short, forge=RecordingForge()).once()
    assert (report.clusters[0].state, report.progress[0].stage) == ("unchanged", "rendered")


class CountingForge(RecordingForge):
    """A forge that counts how often it is asked."""

    asked: int = 0

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """Count, and answer."""
        self.asked += 1
        return super().statuses(commit)


def test_pipeline_that_says_nothing_is_asked_about_less_and_less(loops: Loops, work: Path) -> None:
    """Fifty clusters, asked about at every poll, use up what a forge's token may ask in an hour."""
    forge = CountingForge()
    loop = loops(forge=forge)
    loop.once()
    for _ in range(20):
        loop.once()
    assert forge.asked >= 20  # whoever waits for the plan wants to see it
    forge.asked = 0
    for _ in range(100):
        loop.once()
    assert forge.asked <= 10
    render = CommitId(git(work.parent / "remote.git", "rev-parse", "main"))
    context = "fleet-reconciler/apply/terraform"
    forge.set_status(render, CommitStatus(context=context, state="success", description=""))
    assert "applied" in {loop.once().progress[0].stage for _ in range(20)}


@pytest.mark.parametrize(
    ("answer", "in_force", "stage"),
    [
        (True, True, "live"),
        (True, False, "rendered"),
        (False, True, "rendered"),
        (None, True, "rendered"),
    ],
)
def test_live_is_what_ec2_has_and_the_capacity_loop_runs_with(
    loops: Loops, answer: bool | None, in_force: bool, stage: str
) -> None:
    """Without a forge the capacity loop's own eyes must do; a limit that is not in force is not."""
    loop = loops()
    loop.once()
    (progress,) = loop.once().progress
    assert with_live(progress, answer, in_force=in_force).stage == stage


def test_unreadable_config_has_come_no_further_than_the_commit(loops: Loops, work: Path) -> None:
    """The chain must not call a refused config live because an older one is."""
    write_and_push(work, "sectors.yaml", "nonsense", "Break it")
    (progress,) = loops().once().progress
    assert with_live(progress, True, in_force=True) == progress
    assert progress.stage == "configured"
    assert progress.detail

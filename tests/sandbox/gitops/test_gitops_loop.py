"""The second loop over real git remotes: races, faults, damage."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.gitops.status import GitopsReport
from reconciler.loops.gitops_loop import GitopsLoop, GitopsSettings
from reconciler.loops.gitops_progress import IsLive
from reconciler.model.errors import Conflict, NotFound, PortError, ReconcilerError, Unavailable
from reconciler.ports.forge import CommitStatus, PullRequest, StatusState
from reconciler.ports.repository import Commit, CommitId, FileChange
from tests.git_remote import GIT_TIMEOUT_SECONDS, git, make_remote, write_and_push

pytestmark = pytest.mark.sandbox

SETTINGS = GitopsSettings(version="1.0.0")


def config(max_capacity: int, cluster: str = "one") -> str:
    """A small sector config that differs in one number."""
    return (
        f"cluster: {cluster}\nsectors:\n  primary:\n    kind: memory\n"
        f"    fleets:\n    - {{size: small, max_capacity: {max_capacity}}}\n"
        f"    - {{size: medium, initial_node_count: {max_capacity}}}\n"
    )


class ImmediateClock:
    """A clock whose waits end at once and are kept."""

    def __init__(self) -> None:
        self.waits_seconds: list[float] = []

    def now(self) -> datetime:
        """A fixed day."""
        return datetime(2026, 1, 31, tzinfo=UTC)

    def monotonic_seconds(self) -> float:
        """The time that was waited for."""
        return sum(self.waits_seconds)

    def wait_seconds(self, seconds: float) -> None:
        """Let no time pass."""
        self.waits_seconds.append(seconds)


class InterferingRepository(GitRepository):
    """The real repository, with something that happens right before each push."""

    def __init__(self, settings: GitSettings, before_push: Callable[[], object]) -> None:
        super().__init__(settings)
        self._before_push = before_push
        self.pushes = 0

    def push(self, commit: CommitId, branch: str | None = None) -> None:
        """Let the world move, then push."""
        self.pushes += 1
        self._before_push()
        super().push(commit, branch)


class RecordingForge:
    """A forge that keeps what it is told."""

    def __init__(self, failure: PortError | None = None) -> None:
        self.statuses_shown: list[tuple[CommitId, CommitStatus]] = []
        self.pull_requests: list[tuple[str, str, str, str]] = []
        self._failure = failure

    def recover(self) -> None:
        """Fail no longer."""
        self._failure = None

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Keep the status, or fail."""
        if self._failure is not None:
            raise self._failure
        self.statuses_shown.append((commit, status))

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """What was shown, pipelines included."""
        if self._failure is not None:
            raise self._failure
        return {each.context: each.state for shown, each in self.statuses_shown if shown == commit}

    def comment(self, number: int, marker: str, body: str) -> None:
        """Pipelines comment, the loop does not."""

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Keep the request, or fail."""
        if self._failure is not None:
            raise self._failure
        self.pull_requests.append((branch, base, title, body))
        return PullRequest(number=1, url="https://forge.example/1")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a config repository."""
    return make_remote(tmp_path, {"sectors.yaml": config(5), "README.md": "ours\n"})


@pytest.fixture
def loops(work: Path) -> Iterator[Callable[..., GitopsLoop]]:
    """Makes loops over the remote, and closes their repositories."""
    opened: list[GitRepository] = []

    def make(
        settings: GitopsSettings = SETTINGS,
        repository: GitRepository | None = None,
        forge: RecordingForge | None = None,
        is_live: IsLive | None = None,
    ) -> GitopsLoop:
        port = repository or GitRepository(GitSettings(url=remote_of(work)))
        opened.append(port)
        return GitopsLoop(port, ImmediateClock(), settings, forge, is_live)

    yield make
    for port in opened:
        port.close()


def remote_of(work: Path) -> str:
    """The address of the remote of a person's clone."""
    return str(work.parent / "remote.git")


def pulled(work: Path) -> list[str]:
    """Files of the branch after a pull."""
    git(work, "pull", "-q", "--rebase", "origin", "main")
    return git(work, "ls-files").splitlines()


def subjects(work: Path) -> list[str]:
    """Subjects at the remote, newest first."""
    return git(Path(remote_of(work)), "log", "--format=%s", "main").splitlines()


Loops = Callable[..., GitopsLoop]


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


def work_after_pull(work: Path) -> Path:
    """The person's clone, up to date."""
    pulled(work)
    return work


def test_remote_that_moves_between_fetch_and_push_is_rendered_afresh(
    loops: Loops, work: Path
) -> None:
    """Pushing the old decision on top of a new config would apply yesterday's capacity."""
    configs = iter([config(9)])

    def move_once() -> None:
        for text in configs:
            write_and_push(work, "sectors.yaml", text, "Raise to nine")

    port = InterferingRepository(GitSettings(url=remote_of(work)), move_once)
    report = loops(repository=port).once()
    assert (report.attempts, port.pushes) == (2, 2)
    pulled(work)
    assert json.loads((work / "terraform/fleets.auto.tfvars.json").read_text())["fleets"][
        "primary-medium"
    ]["initial_node_count"] == 9  # fmt: skip
    assert "Raise to nine" in git(work, "log", "-1", "--format=%B")


def test_remote_that_always_moves_ends_as_a_conflict(loops: Loops, work: Path) -> None:
    """A race that is never won must end and be reported, not spin for ever."""
    count = iter(range(100))
    port = InterferingRepository(
        GitSettings(url=remote_of(work)),
        lambda: write_and_push(work, "README.md", f"{next(count)}\n", "Busy"),
    )
    settings = GitopsSettings(version="1.0.0", attempts_max=3)
    with pytest.raises(Conflict):
        loops(settings, port).once()
    assert port.pushes == 3
    assert "Render" not in " ".join(subjects(work))


def test_two_loops_and_a_person_for_ten_rounds_lose_nothing(loops: Loops, work: Path) -> None:
    """Two replicas and a colleague must end with every human commit and one render of each."""
    pair = [loops(), loops()]
    for number in range(10):
        pulled(work)
        write_and_push(work, "sectors.yaml", config(number + 10), f"Round {number}")
        failures: list[BaseException] = []
        threads = [threading.Thread(target=_turn, args=(loop, failures)) for loop in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert not failures
    log = subjects(work)
    assert [s for s in log if s.startswith("Round")] == [f"Round {n}" for n in range(9, -1, -1)]
    assert len([s for s in log if s.startswith("Render")]) == 10
    assert git(work, "status", "--porcelain") == ""


def _turn(loop: GitopsLoop, failures: list[BaseException]) -> None:
    try:
        loop.once()
    except ReconcilerError as error:
        failures.append(error)


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


def test_rendered_file_edited_by_hand_is_mended(loops: Loops, work: Path) -> None:
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


def test_pull_request_mode_leaves_the_branch_alone(loops: Loops, work: Path) -> None:
    """Where review is asked for, nothing may land without it."""
    head = git(work, "rev-parse", "HEAD")
    forge = RecordingForge()
    settings = GitopsSettings(version="1.0.0", mode="pull-request")
    loop = loops(settings, forge=forge)
    report = loop.once()
    branch = f"reconciler/{head[:12]}"
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


def test_forge_that_fails_does_not_stop_the_commit(loops: Loops) -> None:
    """A forge outage must not keep the config from being rendered."""
    forge = RecordingForge(Unavailable("forge", "down"))
    assert loops(forge=forge).once().clusters[0].state == "committed"


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


@pytest.mark.parametrize(
    ("answer", "stage"), [(True, "live"), (False, "rendered"), (None, "rendered")]
)
def test_live_is_what_ec2_has(loops: Loops, work: Path, answer: bool | None, stage: str) -> None:
    """Without a forge the capacity loop's own eyes must do."""
    asked: list[tuple[bytes, str]] = []

    def is_live(content: bytes, cluster: str) -> bool | None:
        asked.append((content, cluster))
        return answer

    loop = loops(is_live=is_live)
    loop.once()
    assert loop.once().progress[0].stage == stage
    assert asked[-1] == (config(5).encode(), "one")


def test_unreadable_config_has_come_no_further_than_the_commit(loops: Loops, work: Path) -> None:
    """The chain must not call a refused config live because an older one is."""
    write_and_push(work, "sectors.yaml", "nonsense", "Break it")
    (progress,) = loops(is_live=lambda *_: True).once().progress
    assert progress.stage == "configured"
    assert progress.detail


def test_deleted_branch_is_reported_with_its_name(loops: Loops, work: Path) -> None:
    """The loop must say which branch vanished."""
    loop = loops()
    loop.once()
    git(Path(remote_of(work)), "update-ref", "-d", "refs/heads/main")
    with pytest.raises(NotFound, match="branch main"):
        loop.once()


def test_copy_damaged_between_two_turns_is_survived(
    loops: Loops, work: Path, tmp_path: Path
) -> None:
    """A lost disk must cost one fetch, not an incident."""
    copy = tmp_path / "copy.git"
    loop = loops(repository=GitRepository(GitSettings(url=remote_of(work), directory=copy)))
    loop.once()
    subprocess.run(["rm", "-rf", str(copy / "objects")], check=True, timeout=GIT_TIMEOUT_SECONDS)
    assert loop.once().clusters[0].state == "unchanged"


class LosingRepository(GitRepository):
    """The real repository, whose first push arrives but whose reply is lost."""

    lost = False

    def push(self, commit: CommitId, branch: str | None = None) -> None:
        """Push, and forget to say so once."""
        super().push(commit, branch)
        if not self.lost:
            self.lost = True
            raise Conflict("push", "the reply was lost")


def test_push_whose_reply_is_lost_is_not_repeated(loops: Loops, work: Path) -> None:
    """A second commit for the same config would be noise in everyone's history."""
    report = loops(repository=LosingRepository(GitSettings(url=remote_of(work)))).once()
    assert [s.state for s in report.clusters] == ["unchanged"]
    assert len([s for s in subjects(work) if s.startswith("Render")]) == 1


def test_watch_reports_failures_and_goes_on_when_woken(loops: Loops, work: Path) -> None:
    """A remote that was down for a minute must not end the second loop."""
    loop = loops(GitopsSettings(version="1.0.0", poll_seconds=3600))
    seen: list[GitopsReport | ReconcilerError] = []
    remote = Path(remote_of(work))
    hidden = remote.with_name("hidden.git")
    remote.rename(hidden)
    turned = threading.Semaphore(0)

    def report(outcome: GitopsReport | ReconcilerError) -> None:
        seen.append(outcome)
        turned.release()

    thread = threading.Thread(target=loop.watch, args=(report,))
    thread.start()
    assert turned.acquire(timeout=60)
    hidden.rename(remote)
    loop.wake()
    assert turned.acquire(timeout=60)
    loop.stop()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert isinstance(seen[0], NotFound)
    assert isinstance(seen[1], GitopsReport)
    assert seen[1].clusters[0].state == "committed"


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

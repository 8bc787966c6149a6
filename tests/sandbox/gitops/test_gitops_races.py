"""The second loop over a real git remote that moves, vanishes or loses replies."""

import json
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.gitops.repository.status import GitopsReport
from reconciler.loops.second_loop.gitops_loop import GitopsLoop, GitopsSettings, Mode
from reconciler.model.errors import Conflict, Forbidden, NotFound, ReconcilerError, Refused
from reconciler.ports.repository import Commit, CommitId
from tests.git_remote import GIT_TIMEOUT_SECONDS, git, write_and_push
from tests.sandbox.gitops.loop_world import (
    Loops,
    branch_of,
    config,
    pulled,
    remote_of,
    subjects,
)

pytestmark = pytest.mark.sandbox


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
            thread.join(timeout=240)
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


@pytest.mark.parametrize("mode", ["pull-request", "push"])
def test_loop_that_leads_no_more_pushes_nothing_more(loops: Loops, work: Path, mode: Mode) -> None:
    """A turn may take minutes, and the replica that leads by then pushes as well."""
    for each in "abc":
        write_and_push(work, f"clusters/{each}/sectors.yaml", config(3, each), f"Cluster {each}")
    leads = [True]

    def lose_leadership() -> None:
        leads.clear()
        if mode == "push":
            write_and_push(work, "README.md", "more\n", "The push will be rejected")

    port = InterferingRepository(GitSettings(url=remote_of(work)), lose_leadership)
    settings = GitopsSettings(version="1.0.0", mode=mode, configs=("clusters/*/sectors.yaml",))
    loop = loops(settings, port)
    outcomes: list[GitopsReport | ReconcilerError] = []

    def report(outcome: GitopsReport | ReconcilerError) -> None:
        outcomes.append(outcome)
        loop.stop()

    loop.watch(report, lambda: bool(leads))
    assert port.pushes == 1
    (outcome,) = outcomes
    assert isinstance(outcome, Refused if mode == "pull-request" else Conflict)


REVIEW = GitopsSettings(version="1.0.0", mode="pull-request", attempts_max=2)


def test_lock_at_the_remote_is_waited_for_and_is_no_proposal(loops: Loops, work: Path) -> None:
    """The config counted as proposed, nothing had been pushed, and nobody tried again."""
    branch = branch_of(git(work, "rev-parse", "HEAD"), "sectors.yaml")
    remote = Path(remote_of(work))
    lock = remote / "refs/heads" / f"{branch}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    port = InterferingRepository(GitSettings(url=str(remote)), lambda: None)
    loop = loops(REVIEW, port)
    with pytest.raises(Conflict, match=f"the remote did not update the branch {branch}"):
        loop.once()
    assert port.pushes == 2
    lock.unlink()
    (status,) = loop.once().clusters
    assert (status.state, status.commit) == ("proposed", git(remote, "rev-parse", branch))


@pytest.mark.parametrize("followed", ["main", "reconciler"])
def test_branch_that_is_in_the_way_of_reviews_is_named(
    loops: Loops, work: Path, followed: str
) -> None:
    """Git has no `reconciler/abc` beside a branch `reconciler`: no review was ever opened."""
    git(work, "push", "-q", "origin", "HEAD:refs/heads/reconciler")
    report = loops(replace(REVIEW, branch=followed)).once()
    (status,) = report.clusters
    assert (status.state, status.commit) == ("refused", None)
    assert "the branch reconciler is in the way of reconciler/" in status.detail
    assert report.push_refused


def test_commit_of_a_proposal_is_the_one_that_the_remote_has(loops: Loops, work: Path) -> None:
    """After a commit of somebody else's the status named one that exists nowhere."""
    loop = loops(REVIEW)
    (first,) = loop.once().clusters
    write_and_push(work, "README.md", "more\n", "Unrelated")
    (second,) = loop.once().clusters
    assert second.commit == first.commit == git(Path(remote_of(work)), "rev-parse", first.branch)


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
    assert turned.acquire(timeout=240)
    hidden.rename(remote)
    loop.wake()
    assert turned.acquire(timeout=240)
    loop.stop()
    thread.join(timeout=240)
    assert not thread.is_alive()
    assert isinstance(seen[0], NotFound)
    assert isinstance(seen[1], GitopsReport)
    assert seen[1].clusters[0].state == "committed"


class ProtectedRepository(GitRepository):
    """The real repository, whose branch takes no push while `protected`."""

    def __init__(self, settings: GitSettings) -> None:
        super().__init__(settings)
        self.protected = True
        self.pushes = 0
        self.fetches = threading.Semaphore(0)

    def fetch(self) -> Commit:
        """Fetch, and count."""
        tip = super().fetch()
        self.fetches.release()
        return tip

    def push(self, commit: CommitId, branch: str | None = None) -> None:
        """Push, or refuse to."""
        self.pushes += 1
        if self.protected:
            raise Forbidden("push", "protected branch hook declined")
        super().push(commit, branch)


def test_refused_push_does_not_keep_the_branch_from_being_followed(
    loops: Loops, work: Path
) -> None:
    """A commit reached the capacity loop of the replica that leads ten minutes late."""
    port = ProtectedRepository(GitSettings(url=remote_of(work)))
    loop = loops(GitopsSettings(version="1.0.0", poll_seconds=0.05), port)
    turned = threading.Semaphore(0)
    thread = threading.Thread(target=loop.watch, args=(lambda _: turned.release(),))
    thread.start()
    try:
        assert turned.acquire(timeout=240)
        for _ in range(6):
            assert port.fetches.acquire(timeout=240)
        assert port.pushes == 1
        write_and_push(work, "README.md", "theirs\n", "Not about the config")
        assert turned.acquire(timeout=240)
        assert port.pushes == 2
        port.protected = False
        loop.wake()
        assert turned.acquire(timeout=240)
        assert subjects(work)[0].startswith("Render")
    finally:
        loop.stop()
        thread.join(timeout=240)
    assert not thread.is_alive()

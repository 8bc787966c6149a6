"""What the tests of the second loop share: a remote, a clock, a forge, a config."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.commit_message import review_branch
from reconciler.loops.second_loop.gitops_loop import GitopsLoop, GitopsSettings
from reconciler.model.errors import ReconcilerError
from reconciler.ports.forge import CommitStatus, PullRequest, StatusState
from reconciler.ports.repository import CommitId
from tests.git_remote import git

SETTINGS = GitopsSettings(version="1.0.0")
Loops = Callable[..., GitopsLoop]


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


class RecordingForge:
    """A forge that keeps what it receives."""

    def __init__(self, failure: ReconcilerError | None = None) -> None:
        self.statuses_shown: list[tuple[CommitId, CommitStatus]] = []
        self.pull_requests: list[tuple[str, str, str, str]] = []
        self.closed: set[str] = set()
        """Branches whose pull request people closed."""
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

    def pull_request(self, branch: str, base: str) -> PullRequest | None:
        """The request, open or closed, or fail."""
        if self._failure is not None:
            raise self._failure
        branches = list(dict.fromkeys(b for b, onto, *_ in self.pull_requests if onto == base))
        if branch not in branches:
            return None
        number, closed = branches.index(branch) + 1, branch in self.closed
        return PullRequest(number=number, url=f"https://forge.example/{number}", closed=closed)

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Keep the request, or fail."""
        if self._failure is not None:
            raise self._failure
        self.pull_requests.append((branch, base, title, body))
        found = self.pull_request(branch, base)
        assert found is not None
        return found


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


def work_after_pull(work: Path) -> Path:
    """The person's clone, up to date."""
    pulled(work)
    return work


def branch_of(commit: str, path: str) -> str:
    """The branch on which the render of a config's commit is reviewed."""
    target = RenderTarget(config_path=path, output_dir=path.replace("sectors.yaml", "terraform"))
    return review_branch(target, commit[:12])


def changed_clusters(work: Path, branch: str) -> set[str]:
    """The clusters whose files a branch at the remote changes."""
    remote = Path(remote_of(work))
    changed = git(remote, "diff", "--name-only", "--merge-base", "main", branch).split()
    return {path.split("/")[1] for path in changed}


def merged(work: Path, branch: str, how: str) -> None:
    """A reviewer merges, and leaves the branch as forges do."""
    pulled(work)
    git(work, "fetch", "-q", "origin")
    if how == "squash":
        git(work, "merge", "-q", "--squash", f"origin/{branch}")
        git(work, "commit", "-qm", "Merge it")
    else:
        git(work, "merge", "-q", "--no-ff", "-m", "Merge it", f"origin/{branch}")
    git(work, "push", "-q", "origin", "HEAD:main")

"""The result of one turn of the second loop, per cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.model.errors import Problem
from reconciler.ports.repository import Commit, CommitId

ClusterState = Literal[
    "unchanged", "committed", "proposed", "invalid", "missing", "held", "refused"
]
"""`proposed`: on a branch of its own. `held`: a newer version of the program, or one with other
options, rendered the same config differently, or people closed the pull request; this render is not
committed. `refused`: the remote does not let us push it."""

Stage = Literal["configured", "rendered", "planned", "applied", "live"]
STAGES: Final[tuple[Stage, ...]] = ("configured", "rendered", "planned", "applied", "live")
"""The stages on the way to EC2, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """Says what became of one config."""

    target: RenderTarget
    state: ClusterState
    cluster: str = ""
    """Empty when the config could not be read."""
    directories: tuple[str, ...] = ()
    """Its root modules, that of the home Region first; none when the config could not be read."""
    commit: CommitId | None = None
    """The commit that was pushed for it."""
    branch: str = ""
    """The branch it was pushed to; empty when nothing was pushed."""
    pull_request: str = ""
    """Address of the pull request, when a forge opened one."""
    detail: str = ""
    problems: tuple[Problem, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[str, ...]:
        """Return its root modules; that of the home Region when the config could not be read."""
        return self.directories or (self.target.output_dir,)

    @property
    def healthy(self) -> bool:
        """Return whether the repository has, or was offered, what the config asks for."""
        return self.state in {"unchanged", "committed", "proposed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProgress:
    """Says which stage was reached last, and what the next one waits for."""

    config: str
    """Path of the sector config in the repository."""
    cluster: str
    """Empty when the config cannot be read."""
    stage: Stage
    """`rendered`: on the branch. `planned`: the pipeline's plan passed the guard. `live`: EC2 has
    the fleets as the config says, and the capacity loop runs with it."""
    detail: str = ""
    asks_for_live: bool = False
    """Return whether only EC2 and the capacity loop are left to check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsReport:
    """Says what one turn of the second loop found and did."""

    tip: Commit
    """The commit of the branch that the turn is based on."""
    clusters: tuple[ClusterStatus, ...]
    attempts: int = 1
    """How many turns it took, as the remote branch moved."""
    branch: str = ""
    """The branch that was pushed to, the first of several; empty when nothing was."""
    pull_request: str = ""
    """Address of its pull request, when a forge opened one."""
    progress: tuple[ClusterProgress, ...] = ()
    """How far each config has come, in the order of `clusters`."""
    unshown: tuple[str, ...] = ()
    """Why commit statuses could not be published; the work itself is done."""
    overlooked: tuple[str, ...] = ()
    """What the patterns do not find though somebody may expect it, see `targets.overlooked`."""

    @property
    def push_refused(self) -> bool:
        """Return whether the remote refused a commit, which is tried again later each time."""
        return any(status.state == "refused" for status in self.clusters)

    @property
    def exit_code(self) -> int:
        """Return `gitops --once`'s exit code.

        2: a config is invalid or missing. 1: one is held, or its push was refused.
        """
        states = {status.state for status in self.clusters}
        if states & {"invalid", "missing"}:
            return 2
        return 1 if states & {"held", "refused"} else 0


def report_json(report: GitopsReport) -> dict[str, Any]:
    """Return the report as `--output json` prints it."""
    return {
        "tip": report.tip.id,
        "branch": report.branch or None,
        "pull_request": report.pull_request or None,
        "attempts": report.attempts,
        "unshown": list(report.unshown),
        "clusters": [_status_json(status) for status in report.clusters],
        "progress": [progress_json(progress) for progress in report.progress],
    }


def _status_json(status: ClusterStatus) -> dict[str, Any]:
    return {
        "cluster": status.cluster or None,
        "config": status.target.config_path,
        "output": status.target.output_dir,
        "directories": list(status.directories),
        "state": status.state,
        "commit": status.commit,
        "branch": status.branch or None,
        "pull_request": status.pull_request or None,
        "detail": status.detail,
        "left_out": dict(sorted(status.left_out.items())),
        "faults": [
            {
                "code": problem.code,
                "path": problem.path,
                "line": problem.line,
                "column": problem.column,
                "message": problem.message,
            }
            for problem in status.problems
        ],
    }


def progress_json(progress: ClusterProgress) -> dict[str, Any]:
    """Return it as `/api/status` and `reconciler gitops --output json` show it."""
    return {
        "config": progress.config,
        "cluster": progress.cluster or None,
        "stage": progress.stage,
        "detail": progress.detail,
    }

"""How a stage of a pipeline ends: its exit code, and its commit status."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.model.errors import InputError
from reconciler.ports.forge import StatusState

Show = Callable[[StatusState, str], None]
"""Publishes a state and its description."""
_FAILED: Final[tuple[StatusState, str]] = ("failure", "failed: see the job")


@dataclass
class StageOutcome:
    """How a stage ended if it raised nothing."""

    failed: bool = False
    detail: str = "refused: see the summary"
    """Why it failed, in a few words."""

    def published(self, show: Show) -> None:
        """Publish it."""
        if self.failed:
            show("failure", self.detail)
        else:
            show("success", "done")


@dataclass
class ApplyOutcome(StageOutcome):
    """How an apply ended if it raised nothing."""

    begun: bool = False
    """Whether the plan was found to be of this checkout and of the state."""
    show: Show = lambda _state, _description: None
    """Publishes on the checkout's commit."""

    def accepted(self) -> None:
        """Publish that the apply is under way, as its plan is of this commit."""
        self.begun = True
        self.show("pending", "under way")


@contextmanager
def plan_shown(directory: Path) -> Iterator[StageOutcome]:
    """Publish how a plan ends as a commit status, for the status chain and for people."""
    from reconciler.bootstrap.forge import stage_shown  # noqa: PLC0415 - heavy

    show, outcome = stage_shown("plan", directory), StageOutcome()
    show("pending", "under way")
    try:
        yield outcome
    except BaseException:
        show(*_FAILED)
        raise
    outcome.published(show)


@contextmanager
def apply_shown(directory: Path, kept: Path) -> Iterator[ApplyOutcome]:
    """Publish how an apply ends as a commit status, on the commit that it is of.

    That is the checkout's once the plan was accepted for it. What fails before, as a stale plan
    does, changed nothing: it failed for the commit that was planned, unless that one is applied
    already. A job of an older pipeline must not call the apply of a newer commit failed.
    """
    from reconciler.bootstrap.forge import stage_shown  # noqa: PLC0415 - heavy

    outcome = ApplyOutcome(show=stage_shown("apply", directory))
    try:
        yield outcome
    except BaseException:
        if outcome.begun:
            outcome.show(*_FAILED)
        else:
            planned = _planned_commit(kept)
            stage_shown("apply", directory, unless="success", commit=planned)(*_FAILED)
        raise
    outcome.published(outcome.show)


def _planned_commit(kept: Path) -> str:
    """Return the commit of a kept plan; empty when there is none."""
    from reconciler.gitops.terraform_plan.directory import PlanDirectory  # noqa: PLC0415 - heavy

    try:
        return PlanDirectory(kept).approved().inputs.commit
    except InputError:
        return ""


def show_nothing_to_apply(directory: Path) -> None:
    """Publish that nothing of the commit is left to apply, as no job will start to do so.

    Once: forges take a limited number of statuses for a commit, and a schedule publishes the same
    all day.
    """
    from reconciler.bootstrap.forge import stage_shown  # noqa: PLC0415 - heavy

    stage_shown("apply", directory, unless="success")("success", "nothing is left to apply")

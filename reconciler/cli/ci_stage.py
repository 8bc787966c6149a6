"""How a stage of a pipeline ends: its exit code, and its commit status."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass
class StageOutcome:
    """How a stage ended if it raised nothing."""

    failed: bool = False
    detail: str = "refused: see the summary"
    """Why it failed, in a few words."""


@contextmanager
def stage_shown_as(stage: Literal["plan", "apply"], directory: Path) -> Iterator[StageOutcome]:
    """Publish the stage's end as a commit status, for the status chain and for people."""
    from reconciler.bootstrap.forge import stage_shown  # noqa: PLC0415 - heavy

    show, outcome = stage_shown(stage, directory), StageOutcome()
    show("pending", "under way")
    try:
        yield outcome
    except BaseException:
        show("failure", "failed: see the job")
        raise
    show(*(("failure", outcome.detail) if outcome.failed else ("success", "done")))


def show_nothing_to_apply(directory: Path) -> None:
    """Publish that nothing of the commit is left to apply, as no job will start to do so."""
    from reconciler.bootstrap.forge import stage_shown  # noqa: PLC0415 - heavy

    stage_shown("apply", directory, once=True)("success", "nothing is left to apply")

"""How far the newest config of each cluster has come on its way to EC2; pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from reconciler.gitops.repository.status import STAGES, ClusterProgress, ClusterStatus, Stage
from reconciler.ports.forge import StatusState

PipelineStage = Literal["plan", "apply"]

_AFTER_APPLY: Final[Mapping[StatusState, tuple[Stage, str]]] = {
    "success": ("applied", ""),
    "pending": ("planned", "is being applied"),
}
_AFTER_PLAN: Final[Mapping[StatusState, tuple[Stage, str]]] = {
    "success": ("planned", "waits for its approval"),
    "pending": ("rendered", "waits for the pipeline's plan"),
}


def stage_context(stage: PipelineStage, output_dir: str) -> str:
    """Return the name of the commit status with which a pipeline reports how a stage ended."""
    return f"fleet-reconciler/{stage}/{output_dir}"


def progress_of(status: ClusterStatus, checks: Mapping[str, StatusState] | None) -> ClusterProgress:
    """Return where one cluster stands, according to git and the pipeline.

    Args:
        status: The result of the second loop's turn.
        checks: Commit statuses since the render of each root module, by context; None: there is no
            forge to ask.
    """
    refused = _rendered(status)
    stage, detail = refused or _through_the_pipeline(status, checks)
    unseen = checks is None and refused is None
    return ClusterProgress(
        config=status.target.config_path,
        cluster=status.cluster,
        stage=stage,
        detail=detail,
        # Only Terraform sees images and volumes: where the pipeline's status can be read, nothing
        # is live before it was applied.
        asks_for_live=stage == "applied" or unseen,
    )


def with_live(
    progress: ClusterProgress,
    is_live: bool | None,  # noqa: FBT001 - an answer of three values
    *,
    in_force: bool,
) -> ClusterProgress:
    """Return the progress with the last stage, `live`, where both loops have the config.

    Args:
        progress: According to git and the pipeline.
        is_live: Whether EC2 has fleets with the tags and types of the config; None if unknown here.
        in_force: Whether the capacity loop has planned and acted with the config of this commit.
    """
    if not progress.asks_for_live or is_live is None:
        return progress
    if is_live and in_force:
        seen = progress.stage == "applied"
        detail = "" if seen else "as far as tags and types tell"
        return replace(progress, stage="live", detail=detail)
    if is_live:
        return replace(progress, detail="the capacity loop does not run with this config yet")
    if progress.stage == "applied":
        return replace(progress, detail="EC2 differs from the config: see drift")
    return progress


def _rendered(status: ClusterStatus) -> tuple[Stage, str] | None:
    """Return why the branch does not have the render; None when it does."""
    if status.state == "proposed":
        return "configured", "waits for its review"
    return None if status.healthy else ("configured", status.detail or status.state)


def _through_the_pipeline(
    status: ClusterStatus, checks: Mapping[str, StatusState] | None
) -> tuple[Stage, str]:
    if checks is None:
        return "rendered", "plan and apply are not seen without a forge's token"
    reached = [(_of_root(directory, checks), directory) for directory in status.roots]
    (stage, detail), directory = min(reached, key=lambda each: STAGES.index(each[0][0]))
    return stage, f"{directory}: {detail}" if detail and len(reached) > 1 else detail


def _of_root(directory: str, checks: Mapping[str, StatusState]) -> tuple[Stage, str]:
    """Return how far the pipeline is with one root module, and what it waits for."""
    applied = checks.get(stage_context("apply", directory))
    if applied is not None:
        return _AFTER_APPLY.get(applied, ("planned", "the apply failed: see the pipeline"))
    planned = checks.get(stage_context("plan", directory), "pending")
    return _AFTER_PLAN.get(planned, ("rendered", "the plan failed or was refused: see its job"))

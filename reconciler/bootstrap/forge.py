"""Chooses the forge of a config repository from its address, options and environment."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reconciler.adapters.forge import ForgeSettings, forge
from reconciler.adapters.forge.settings import ForgeKind, api_of, forge_kind_of, place_of
from reconciler.adapters.git.checkout import GitCheckout
from reconciler.gitops.repository.progress import PipelineStage, stage_context
from reconciler.model.errors import PortError, ToolError, UsageError
from reconciler.ports.forge import CommitStatus, Forge, StatusState
from reconciler.ports.repository import CommitId

ForgeChoice = Literal["auto", "github", "gitlab", "none"]

_PULL_REFERENCE = re.compile(r"refs/pull/([0-9]+)/merge")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NUMBER_DIGITS_MAX = 18
"""How many digits the number of a pull request may have, as databases store it."""
_TOKENS = ("RECONCILER_FORGE_TOKEN", "RECONCILER_GIT_TOKEN")
"""The first of these that is set, with the token or, with `_FILE` appended, a file's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """Identifies the pull request that a pipeline runs for."""

    forge: Forge
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pipeline:
    """What a job's environment says about its pipeline."""

    kind: ForgeKind
    api_url: str
    repository: str
    number: int | None
    """Number of the pull request; None on a branch."""

    def settings(self) -> ForgeSettings:
        """Return the settings for its forge."""
        token, token_file = _token()
        return ForgeSettings(
            kind=self.kind,
            api_url=self.api_url.rstrip("/"),
            repository=self.repository,
            token=token,
            token_file=token_file,
        )


def _pipeline() -> _Pipeline | None:
    """Return the pipeline that this process runs in, None outside of one.

    Source: the variables that GitHub Actions and GitLab CI give to every job, read 2026-11.
    """
    variables = os.environ  # noqa: TID251 - pipelines say who they are in no other way
    api, repository = variables.get("GITHUB_API_URL"), variables.get("GITHUB_REPOSITORY")
    if api and repository:
        reference = _PULL_REFERENCE.fullmatch(variables.get("GITHUB_REF", ""))
        number = _number(reference.group(1)) if reference else None
        return _Pipeline(kind="github", api_url=api, repository=repository, number=number)
    api, repository = variables.get("CI_API_V4_URL"), variables.get("CI_PROJECT_PATH")
    if api and repository:
        number = _number(variables.get("CI_MERGE_REQUEST_IID", ""))
        return _Pipeline(kind="gitlab", api_url=api, repository=repository, number=number)
    return None


def _number(text: str) -> int | None:
    """Return the number of a pull request; None when the text is not one."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS_MAX
    return int(text) if is_number else None


def pipeline_request() -> PipelineRequest | None:
    """Return the pull request of this pipeline, None when it runs for none.

    Raises:
        UsageError: It runs for one, but there is no token.
    """
    pipeline = _pipeline()
    if pipeline is None or pipeline.number is None:
        return None
    if not _has_token():
        raise UsageError(
            "token", "no token of the forge is set", f"set {_TOKENS[0]} or {_TOKENS[0]}_FILE"
        )
    return PipelineRequest(forge=forge(pipeline.settings()), number=pipeline.number)


def stage_shown(
    stage: PipelineStage,
    directory: Path,
    *,
    unless: StatusState | None = None,
    commit: str = "",
) -> Callable[[StatusState, str], None]:
    """Return a function that publishes how a stage ends, on the commit that it runs for.

    It does nothing without a readable token, outside of git, for a pull request (which shows its
    summary) and when the forge does not answer: a missing status must not fail an apply.

    Args:
        stage: Which one.
        directory: The root module.
        unless: Nothing is published on a commit of which the stage is known to have ended so.
        commit: Full name of the commit; anything else: that of the checkout.
    """
    pipeline = _pipeline()
    if pipeline is None or pipeline.number is not None or not _has_token():
        return lambda _state, _description: None
    checkout = GitCheckout().state(str(directory))
    if checkout is None:
        return lambda _state, _description: None
    port = forge(pipeline.settings())
    context = stage_context(stage, checkout.prefix)
    on = CommitId(commit) if _COMMIT.fullmatch(commit) else checkout.commit

    def show(state: StatusState, description: str) -> None:
        with suppress(PortError, ToolError):
            if unless is not None and port.statuses(on).get(context) == unless:
                return
        with suppress(PortError, ToolError):
            port.set_status(on, CommitStatus(context=context, state=state, description=description))

    return show


def forge_for(repository_url: str, choice: ForgeChoice, api_url: str) -> Forge | None:
    """Return the forge; None: not wanted, not known from the address, or no token is set.

    Raises:
        UsageError: A forge was named, but the address of the repository does not say where it is
            there.
    """
    place = place_of(repository_url)
    kind = _kind(choice, place)
    if kind is None:
        return None
    if place is None:
        raise UsageError("--forge", f"{repository_url[:60]!r} names no repository of a forge")
    token, token_file = _token()
    if not _has_token():
        if choice == "auto":
            return None
        raise UsageError("--forge", "there is no token", f"set {_TOKENS[0]} or {_TOKENS[0]}_FILE")
    host, path = place
    settings = ForgeSettings(
        kind=kind,
        api_url=(api_url or api_of(kind, host)).rstrip("/"),
        repository=path,
        token=token,
        token_file=token_file,
    )
    return forge(settings)


def _has_token() -> bool:
    token, token_file = _token()
    return bool(token) or token_file is not None


def _kind(choice: ForgeChoice, place: tuple[str, str] | None) -> ForgeKind | None:
    if choice in {"github", "gitlab"}:
        return "github" if choice == "github" else "gitlab"
    return forge_kind_of(place[0]) if choice == "auto" and place is not None else None


def _token() -> tuple[str, Path | None]:
    variables = os.environ  # noqa: TID251 - credentials come from nowhere else
    for name in _TOKENS:
        token, file = variables.get(name, ""), variables.get(f"{name}_FILE", "")
        if token or file:
            return token, Path(file) if file else None
    return "", None

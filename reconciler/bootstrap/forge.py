"""Chooses the forge of a config repository from its address, options and environment."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reconciler.adapters.forge import ForgeSettings, forge
from reconciler.adapters.forge.settings import ForgeKind, api_of, kind_of, place_of
from reconciler.model.errors import UsageError
from reconciler.ports.forge import Forge

ForgeChoice = Literal["auto", "github", "gitlab", "none"]

_PULL_REFERENCE = re.compile(r"refs/pull/(\d+)/merge")
_TOKENS = ("RECONCILER_FORGE_TOKEN", "RECONCILER_GIT_TOKEN")
"""The first that is set, as a variable or, with `_FILE`, as a file's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """The pull request that a pipeline runs for."""

    forge: Forge
    number: int


def pipeline_request() -> PipelineRequest | None:
    """The pull request of this pipeline, None when it runs for none.

    Source: the variables that GitHub Actions and GitLab CI give to every job, read 2026-11.

    Raises:
        UsageError: It runs for one, but there is no token.
    """
    variables = os.environ  # noqa: TID251 - pipelines say who they are in no other way
    reference = _PULL_REFERENCE.fullmatch(variables.get("GITHUB_REF", ""))
    if reference is not None:
        kind: ForgeKind = "github"
        api, repository = variables.get("GITHUB_API_URL", ""), variables.get("GITHUB_REPOSITORY")
        number = reference.group(1)
    else:
        kind = "gitlab"
        api, repository = variables.get("CI_API_V4_URL", ""), variables.get("CI_PROJECT_PATH")
        number = variables.get("CI_MERGE_REQUEST_IID", "")
    if not number.isdigit() or not repository or not api:
        return None
    token, token_file = _token()
    if not token and token_file is None:
        raise UsageError("token", "there is none", f"set {_TOKENS[0]} or {_TOKENS[0]}_FILE")
    settings = ForgeSettings(
        kind=kind,
        api_url=api.rstrip("/"),
        repository=repository,
        token=token,
        token_file=token_file,
    )
    return PipelineRequest(forge=forge(settings), number=int(number))


def forge_for(repository_url: str, choice: ForgeChoice, api_url: str) -> Forge | None:
    """The forge, or None: none was wanted, none can be told from the address, or no token is set.

    Raises:
        UsageError: A forge was named, but where its repository is cannot be told.
    """
    place = place_of(repository_url)
    kind = _kind(choice, place)
    if kind is None:
        return None
    if place is None:
        raise UsageError("--forge", f"{repository_url[:60]!r} names no repository of a forge")
    token, token_file = _token()
    if not token and token_file is None:
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


def _kind(choice: ForgeChoice, place: tuple[str, str] | None) -> ForgeKind | None:
    if choice in {"github", "gitlab"}:
        return "github" if choice == "github" else "gitlab"
    return kind_of(place[0]) if choice == "auto" and place is not None else None


def _token() -> tuple[str, Path | None]:
    variables = os.environ  # noqa: TID251 - credentials come from nowhere else
    for name in _TOKENS:
        token, file = variables.get(name, ""), variables.get(f"{name}_FILE", "")
        if token or file:
            return token, Path(file) if file else None
    return "", None

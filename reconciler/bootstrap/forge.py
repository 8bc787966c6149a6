"""Chooses the forge of a config repository from its address, options and environment."""

import os
from pathlib import Path
from typing import Literal

from reconciler.adapters.forge import ForgeSettings, forge
from reconciler.adapters.forge.settings import ForgeKind, api_of, kind_of, place_of
from reconciler.model.errors import UsageError
from reconciler.ports.forge import Forge

ForgeChoice = Literal["auto", "github", "gitlab", "none"]

_TOKENS = ("RECONCILER_FORGE_TOKEN", "RECONCILER_GIT_TOKEN")
"""The first that is set, as a variable or, with `_FILE`, as a file's path."""


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

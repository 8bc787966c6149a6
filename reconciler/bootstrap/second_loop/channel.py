"""The messages from the second loop's process to the capacity loop: one JSON object per line.

The other process reads a repository that many people write to. So its messages are untrusted data,
and their form and size are checked.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from reconciler.gitops.repository.followed import BranchConfig, FollowedConfig, is_inside
from reconciler.gitops.repository.status import ClusterProgress, Stage
from reconciler.model.errors import InputError, Problem
from reconciler.ports.repository import CommitId

LINE_BYTES_MAX: Final = 32 * 2**20
"""A config and the files that it names, 4 MiB each, as base64."""
_FILES_MAX: Final = 8

Text = Annotated[str, msgspec.Meta(max_length=4096)]
CommitName = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40,64}$")]


class _Fault(msgspec.Struct, frozen=True):
    line: int
    column: int
    path: Text
    code: Text
    message: Text


class _Config(msgspec.Struct, frozen=True):
    path: Text
    commit: CommitName
    content: bytes
    files: Annotated[Mapping[Text, bytes], msgspec.Meta(max_length=_FILES_MAX)]


class _Followed(msgspec.Struct, frozen=True, tag="followed"):
    config: _Config | None
    trouble: Text
    problems: Annotated[tuple[_Fault, ...], msgspec.Meta(max_length=1000)]
    remedy: Text


class _Progress(msgspec.Struct, frozen=True):
    config: Text
    cluster: Text
    stage: Stage
    detail: Text
    asks_for_live: bool


class _Turn(msgspec.Struct, frozen=True, tag="turn"):
    text: Text
    progress: Annotated[tuple[_Progress, ...], msgspec.Meta(max_length=10_000)] | None
    failed: bool


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Tells the capacity loop of one turn of the second loop."""

    text: str
    """Its result in one line."""
    progress: tuple[ClusterProgress, ...] | None
    """None: it is not known, and what was known stays."""
    failed: bool = False
    """Whether it failed, or its push was refused."""


Message = BranchConfig | Turn


def encode(message: Message) -> bytes:
    """Return a message as one line."""
    if isinstance(message, BranchConfig):
        return msgspec.json.encode(_followed(message)) + b"\n"
    progress = message.progress
    stages = (
        None
        if progress is None
        else tuple(_progress(cluster_progress) for cluster_progress in progress)
    )
    turn = _Turn(text=_short(message.text), progress=stages, failed=message.failed)
    return msgspec.json.encode(turn) + b"\n"


def decode(line: bytes) -> Message:
    """Return the message of a line: the inverse of `encode`.

    Raises:
        InputError: The line is not a valid message.
    """
    try:
        found = msgspec.json.decode(line, type=_Followed | _Turn)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = f"answered what cannot be read: {str(error)[:200]}"
        raise InputError("the process of the second loop", what) from None
    if isinstance(found, _Turn):
        progress = found.progress
        stages = None if progress is None else tuple(_decoded(each) for each in progress)
        return Turn(text=found.text, progress=stages, failed=found.failed)
    config = found.config
    strange = [] if config is None else [name for name in config.files if not is_inside(name)]
    if strange:
        what = f"names a file outside of the config's folder: {strange[0][:80]!r}"
        raise InputError("the process of the second loop", what)
    return BranchConfig(
        config=None
        if config is None
        else FollowedConfig(
            path=config.path,
            commit=CommitId(config.commit),
            content=config.content,
            files=dict(config.files),
        ),
        trouble=found.trouble,
        problems=tuple(
            Problem(line=p.line, column=p.column, path=p.path, code=p.code, message=p.message)
            for p in found.problems
        ),
        remedy=found.remedy,
    )


def _followed(message: BranchConfig) -> _Followed:
    config = message.config
    return _Followed(
        config=None
        if config is None
        else _Config(
            path=config.path, commit=config.commit, content=config.content, files=config.files
        ),
        trouble=_short(message.trouble),
        problems=tuple(
            _Fault(
                line=p.line,
                column=p.column,
                path=_short(p.path),
                code=_short(p.code),
                message=_short(p.message),
            )
            for p in message.problems[:1000]
        ),
        remedy=_short(message.remedy),
    )


def _progress(each: ClusterProgress) -> _Progress:
    return _Progress(
        config=_short(each.config),
        cluster=_short(each.cluster),
        stage=each.stage,
        detail=_short(each.detail),
        asks_for_live=each.asks_for_live,
    )


def _decoded(each: _Progress) -> ClusterProgress:
    return ClusterProgress(
        config=each.config,
        cluster=each.cluster,
        stage=each.stage,
        detail=each.detail,
        asks_for_live=each.asks_for_live,
    )


def _short(text: str) -> str:
    """Return the text for a message; a file's name in git may hold what JSON may not."""
    return text.encode(errors="replace").decode()[:4000]

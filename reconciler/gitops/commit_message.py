"""Writes the messages of the second loop's commits, and recognises its own commits; pure."""

import re
from dataclasses import dataclass

from reconciler.gitops.markdown import code
from reconciler.gitops.targets import RenderTarget
from reconciler.ports.repository import Commit

CONFIG_TRAILER = "Fleet-Reconciler-Config"
"""Full id of the config commit. Its presence marks a commit as made by the loop."""
SOURCE_TRAILER = "Fleet-Reconciler-Source"
"""`<config path> <blob of the config>`: which bytes were rendered, regardless of the history."""
VERSION_TRAILER = "Fleet-Reconciler-Version"
_SUBJECT_MAX = 100
_VERSION_DIGITS_MAX = 9
"""The maximum for each number of a version; no version of this program writes a longer one."""
_PLAIN_PATH = re.compile(r"(?!.*(?:www\.|GH-))[A-Z0-9][A-Z0-9./-]*", re.IGNORECASE)
"""A path that matches is plain text in Markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderSource:
    """What a render was made from."""

    target: RenderTarget
    blob: str
    """The git blob id of the config's content."""
    commit: Commit
    """The commit that the message names."""
    version: str
    """Version of this program."""


def commit_message(source: RenderSource) -> str:
    """Return subject, reason and trailers of the commit with a render."""
    target, commit = source.target, source.commit
    subject = f"Render {target.output_dir} from {target.config_path} at {commit.short}"
    return (
        f"{subject[:_SUBJECT_MAX]}\n\n"
        f"Config commit: {commit.short} {_one_line(commit.subject)}\n\n"
        f"{CONFIG_TRAILER}: {commit.id}\n"
        f"{SOURCE_TRAILER}: {target.config_path} {source.blob}\n"
        f"{VERSION_TRAILER}: {source.version}\n"
    )


def request_body(source: RenderSource) -> str:
    """Return the Markdown body of the pull request for such a commit.

    It has the commit's trailers, as forges use it for the message of a squashed merge.
    """
    commit = source.commit
    _, _, trailers = commit_message(source).rpartition("\n\n")
    if not _PLAIN_PATH.fullmatch(source.target.config_path):
        trailers = "\n".join(code(line) for line in trailers.splitlines())
    return f"Config commit: {code(commit.short)} {code(commit.subject)}\n\n{trailers}\n"


def is_own(commit: Commit) -> bool:
    """Return whether the loop (any version of it) made this commit."""
    return bool(commit.trailers(CONFIG_TRAILER))


def why_not_again(source: RenderSource, last: Commit | None) -> str | None:
    """Return why a render unlike the committed one must not be committed; None if it may.

    Two loops of different versions, or two that were started differently, would otherwise
    overwrite each other's output again and again.

    Args:
        source: What is about to be committed.
        last: The newest commit that changed the output, None when it is not known.
    """
    if last is None or not is_own(last):
        return None
    if last.trailers(SOURCE_TRAILER) != (f"{source.target.config_path} {source.blob}",):
        return None
    theirs = (last.trailers(VERSION_TRAILER) or ("",))[0]
    if _version(source.version) > _version(theirs):
        return None
    if theirs == source.version:
        return (
            f"commit {last.short} rendered the same config differently with the same version"
            f" {theirs}; are there two loops with different options?"
        )
    return f"commit {last.short} was rendered by the newer version {_one_line(theirs)}"


def _version(text: str) -> tuple[int, ...]:
    """Return the first three numbers; none for an invalid version, which counts as the oldest."""
    numbers = re.findall(r"\d+", text)[:3]
    if any(len(number) > _VERSION_DIGITS_MAX for number in numbers):
        return ()
    return tuple(int(number) for number in numbers)


def _one_line(text: str) -> str:
    """Return foreign text without line breaks, which could add trailers to our message."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return clean if len(clean) <= _SUBJECT_MAX else clean[: _SUBJECT_MAX - 1] + "…"

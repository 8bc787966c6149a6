"""Writes the messages of the second loop's commits, and recognises its own commits; pure."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconciler.config.loader import DEFAULT_FILE
from reconciler.gitops.markdown import code
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT, RenderTarget
from reconciler.ports.repository import Commit

CONFIG_TRAILER = "Fleet-Reconciler-Config"
"""Full id of the config commit. Its presence marks a commit as made by the loop."""
SOURCE_TRAILER = "Fleet-Reconciler-Source"
"""`<config path> <blob of the config>`: which bytes were rendered, regardless of the history."""
VERSION_TRAILER = "Fleet-Reconciler-Version"
OUTPUT_TRAILER = "Fleet-Reconciler-Output"
"""Digest of the files that were rendered. Squashing, amending and rebasing keep the trailers, so a
commit with other files was edited by people."""
_SUBJECT_MAX = 100
_BRANCH_DIGITS = 8
"""Of the digest in a branch's name; the configs of one commit are few."""
_VERSION_DIGITS_MAX = 9
"""The maximum for each number of a version; no version of this program writes a longer one."""
_PRE_RELEASE = re.compile(r"(?<=\d)[.-]?(dev|a|b|rc)\.?(\d{1,9})")
_POST_RELEASE = re.compile(r"(?<=\d)[.-]?post\.?(\d{1,9})", re.ASCII)
_RELEASE = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_NUMBERS_MAX = 8
_STAGES = ("dev", "a", "b", "rc", "")
"""What comes before a release, in this order; the release itself last."""
_SKIPPED = re.compile(
    r"\[((?:skip|no)[ _-](?:ci|actions)|(?:ci|actions)[ _-]skip)\]", re.IGNORECASE
)
"""Forges start no pipeline for a commit with such a marker anywhere in its message.

Sources: GitHub Actions, "Skipping workflow runs"; GitLab CI/CD, "Skip a pipeline"; read 2026-11."""
_PLAIN_PATH = re.compile(r"(?!.*(?:www\.|GH-))[A-Z0-9][A-Z0-9./-]*", re.IGNORECASE)
"""A path that matches is plain text in Markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderSource:
    """Says what a render was made from."""

    target: RenderTarget
    blob: str
    """The git blob id of the config's content."""
    commit: Commit
    """The commit that the message names."""
    version: str
    """Version of this program."""
    output: str
    """What was rendered, see `output_digest`."""


def output_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 over rendered files, given by their paths in the repository."""
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
    return f"sha256:{digest.hexdigest()}"


def review_branch(target: RenderTarget, proposed_for: str) -> str:
    """Return the branch on which a render is reviewed, the same in every loop.

    That of `sectors.yaml` at the top of the repository, rendered to `terraform`, has the commit's
    name alone; any other has the config and its directory in its name as well.

    Args:
        target: The config and its directory; no other has this branch.
        proposed_for: Abbreviated name of the commit that the render is proposed for.
    """
    branch = f"reconciler/{proposed_for}"
    if target == RenderTarget(config_path=DEFAULT_FILE, output_dir=DEFAULT_OUTPUT):
        return branch
    digest = hashlib.sha256(f"{target.config_path}\0{target.output_dir}".encode()).hexdigest()
    return f"{branch}-{digest[:_BRANCH_DIGITS]}"


def commit_message(source: RenderSource) -> str:
    """Return subject, reason and trailers of the commit with a render.

    Whoever let no pipeline run for the config commit wants it for the render, which is to be
    applied: no marker like `[skip ci]` gets into the message.
    """
    target, commit = source.target, source.commit
    subject = f"Render {target.output_dir} from {target.config_path} at {commit.short}"
    return _unskipped(
        f"{subject[:_SUBJECT_MAX]}\n\n"
        f"Config commit: {commit.short} {_one_line(commit.subject)}\n\n"
        f"{CONFIG_TRAILER}: {commit.id}\n"
        f"{SOURCE_TRAILER}: {target.config_path} {source.blob}\n"
        f"{VERSION_TRAILER}: {source.version}\n"
        f"{OUTPUT_TRAILER}: {source.output}\n"
    )


def request_body(source: RenderSource) -> str:
    """Return the Markdown body of the pull request for such a commit.

    It has the commit's trailers, as forges use it for the message of a squashed merge.
    """
    commit = source.commit
    _, _, trailers = commit_message(source).rpartition("\n\n")
    if not _PLAIN_PATH.fullmatch(source.target.config_path):
        trailers = "\n".join(code(line) for line in trailers.splitlines())
    text = f"Config commit: {code(commit.short)} {code(commit.subject)}"
    return _unskipped(f"{text}\n\n{trailers}\n")


def is_own(commit: Commit) -> bool:
    """Return whether the loop (any version of it) made this commit."""
    return bool(commit.trailers(CONFIG_TRAILER))


def why_not_again(
    source: RenderSource,
    last: Commit | None,
    output_there: Callable[[], str],
    exists: Callable[[str], bool],
) -> str | None:
    """Return why a render unlike the committed one must not be committed; None if it may.

    Two loops of different versions, or two that were started differently, would otherwise
    overwrite each other's output again and again. What people changed in a commit of the loop is
    no other loop's output.

    Args:
        source: What is about to be committed.
        last: The newest commit that changed the output, None when it is not known.
        output_there: Returns the digest of the files that the last render wrote, as they are now.
        exists: Returns whether the branch has a file at a path.
    """
    stated = () if last is None or not is_own(last) else last.trailers(SOURCE_TRAILER)
    if last is None or len(stated) != 1:
        return None
    path = stated[0].rpartition(" ")[0]
    if path != _unskipped(source.target.config_path) and exists(path):
        return (
            f"commit {last.short} rendered it from {_one_line(path)}, another config of the branch;"
            " are there two loops? Give each config a directory of its own, or remove the config"
            " that is not used any more"
        )
    if stated[0] != _unskipped(f"{source.target.config_path} {source.blob}"):
        return None
    return _why_not_the_same_again(source, last, output_there)


def _why_not_the_same_again(
    source: RenderSource, last: Commit, output_there: Callable[[], str]
) -> str | None:
    """Return why another render of the same config must not be committed; see `why_not_again`."""
    theirs = (last.trailers(VERSION_TRAILER) or ("",))[0]
    one_version = _version(source.version) == _version(theirs)
    newer = _is_newer_build(source.version, theirs) if one_version else None
    if newer or _version(source.version) > _version(theirs):
        return None
    if theirs == source.version:
        stated = last.trailers(OUTPUT_TRAILER)
        if stated and stated != (output_there(),):
            return None
        return (
            f"commit {last.short} rendered the same config differently with the same version"
            f" {theirs}; are there two loops with different options?"
        )
    what = "the newer version"
    if one_version and newer is None:
        what = "another build of the same version,"
    return f"commit {last.short} was rendered by {what} {_one_line(theirs)}"


def _version(text: str) -> tuple[tuple[int, ...], int, int, int]:
    """Return its numbers, whether they are of a release or what precedes it, and its post release.

    There are no numbers for an invalid version, which counts as the oldest. What follows a `+` is
    the name of a build.
    """
    text = text.partition("+")[0]
    before, after = _PRE_RELEASE.search(text), _POST_RELEASE.search(text)
    stage, number = (before[1], int(before[2])) if before else ("", 0)
    release = _RELEASE.search(text[: before.start()] if before else text)
    parts = release[0].split(".") if release else []
    while parts and not parts[-1].strip("0"):
        parts.pop()  # 1.2 and 1.2.0 are one version
    if len(parts) > _NUMBERS_MAX or any(len(part) > _VERSION_DIGITS_MAX for part in parts):
        return (), 0, 0, 0
    post = int(after[1]) if after else -1
    return tuple(int(part) for part in parts), _STAGES.index(stage), number, post


def _is_newer_build(ours: str, theirs: str) -> bool | None:
    """Return whether a build of one version is newer; None: their names have no order.

    Names that differ in a number have one; those of commits have none.
    """
    mine, others = ours.partition("+")[2], theirs.partition("+")[2]
    if not (mine and others):
        return bool(mine) if mine != others else None
    pairs = zip(re.split("[._-]", mine), re.split("[._-]", others), strict=False)
    different = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    if not all(re.fullmatch(r"\d{1,9}", each, re.ASCII) for each in different):
        return None
    return int(different[0]) > int(different[1])


def _unskipped(text: str) -> str:
    """Return the text with markers like `[skip ci]` in parentheses, which no forge looks for."""
    return _SKIPPED.sub(r"(\1)", text)


def _one_line(text: str) -> str:
    """Return foreign text without line breaks, which could add trailers to our message."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return clean if len(clean) <= _SUBJECT_MAX else clean[: _SUBJECT_MAX - 1] + "…"

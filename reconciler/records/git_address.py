"""Addresses and branches of git: which are followed, and that no secret is told or sent openly."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from reconciler.model.errors import UsageError
from reconciler.telemetry.scrub import scrub

_SCHEMES: Final = {"https", "http", "ssh", "git+ssh", "ssh+git", "git", "file"}
_HELPER: Final = re.compile(r"[\w.+-]+::")
"""git starts a program of its own for `NAME::ADDRESS`."""
_BRANCH: Final = re.compile(
    r"(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)|/$|\.$))[A-Za-z0-9][\w./-]{0,199}"
)
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}
_FORMS: Final = "https://, ssh://, git://, file://, git@HOST:PATH or a local path"


def check_git_address(address: str, place: str, instead: str) -> SplitResult:
    """Return the parts of an address that can be followed and shown.

    Args:
        address: Of the repository.
        place: What gives it, for errors.
        instead: Where a secret belongs, for errors.

    Raises:
        UsageError: It is no address, git is not let use its scheme, or a secret is in it. The
            name alone before the host is one too over http, where tokens are written so.
    """
    if not address or address.startswith("-") or any(c in address for c in "\n\r\0"):
        raise UsageError(place, f"{address[:60]!r} is not a git address")
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise UsageError(place, f"is not a valid address: {error}") from None
    if parts.password or scrub(address) != address:
        raise UsageError(place, "the address carries a secret: a password or token", instead)
    if _HELPER.match(address) or ("://" in address and parts.scheme not in _SCHEMES):
        raise UsageError(place, f"{address[:60]!r} is not a git address that is followed", _FORMS)
    return parts


def check_branch(branch: str, place: str) -> None:
    """Refuse what is no branch to git, or would be an option of it.

    Args:
        branch: Its name, without `refs/heads/`.
        place: What gives it, for errors.

    Raises:
        UsageError: It is none.
    """
    if _BRANCH.fullmatch(branch) is None:
        raise UsageError(place, f"{branch[:60]!r} is not a valid branch name")


def check_token_is_hidden(parts: SplitResult, place: str) -> None:
    """Refuse to send a token where everybody on the way would read it.

    Args:
        parts: Of the address that a token is for.
        place: What gives the address, for errors.

    Raises:
        UsageError: It is plain http to another machine.
    """
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise UsageError(place, "a token is never sent over plain http", "use https")

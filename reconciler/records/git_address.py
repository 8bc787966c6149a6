"""Checks addresses and branches of git: they must be supported and must not expose a secret."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from reconciler.model.errors import UsageError
from reconciler.telemetry.scrubbing import scrub

_SCHEMES: Final = {"https", "http", "ssh", "git+ssh", "ssh+git", "git", "file"}
_HELPER: Final = re.compile(r"[\w.+-]+::")
"""git starts a separate program for `NAME::ADDRESS`."""
_BRANCH: Final = re.compile(
    r"(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)|/$|\.$))[A-Za-z0-9][\w./-]{0,199}"
)
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}
_FORMS: Final = "https://, ssh://, git://, file://, git@HOST:PATH or a local path"


def check_git_address(address: str, place: str, instead: str) -> SplitResult:
    """Return the parts of an address that can be followed and shown.

    Args:
        address: Address of the repository.
        place: Where it was given, for errors.
        instead: Where a secret belongs, for errors.

    Raises:
        UsageError: It is not an address, its scheme is not allowed, or it contains a secret. Over
            http a user name alone counts as a secret, as tokens are written like that.
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
    """Refuse what git does not accept as a branch, or would take for an option.

    Args:
        branch: Its name, without `refs/heads/`.
        place: Where it was given, for errors.

    Raises:
        UsageError: It is not a branch name.
    """
    if _BRANCH.fullmatch(branch) is None:
        raise UsageError(place, f"{branch[:60]!r} is not a valid branch name")


def check_token_is_hidden(parts: SplitResult, place: str) -> None:
    """Refuse to send a token unencrypted over the network.

    Args:
        parts: Parts of the address that a token is for.
        place: Where the address was given, for errors.

    Raises:
        UsageError: It is plain http to another machine.
    """
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise UsageError(place, "a token is never sent over plain http", "use https")

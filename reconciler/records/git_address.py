"""Addresses of git repositories: which are followed, and that none carries a secret."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from reconciler.model.errors import UsageError
from reconciler.telemetry.scrub import scrub

_SCHEMES: Final = {"https", "http", "ssh", "git+ssh", "ssh+git", "git", "file"}
_HELPER: Final = re.compile(r"[\w.+-]+::")
"""git starts a program of its own for `NAME::ADDRESS`."""
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
        raise UsageError(place, f"{address[:60]!r} is no git address")
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise UsageError(place, f"is no address: {error}") from None
    if parts.password or scrub(address) != address:
        raise UsageError(place, "the address carries a secret: a password or token", instead)
    if _HELPER.match(address) or ("://" in address and parts.scheme not in _SCHEMES):
        raise UsageError(place, f"{address[:60]!r} is no git address that is followed", _FORMS)
    return parts

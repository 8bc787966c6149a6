"""Access to the status server: the host names it answers to, and an optional bearer token.

A page on the web may make a browser on the cluster's network ask this server under a name of the
page's own (DNS rebinding) and read the answer. Such a request carries that name in its Host
header, so only addresses, `localhost` and names that the cluster itself gives are answered.
"""

import hmac
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from reconciler.model.errors import UsageError, why_unreadable

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Paths that the kubelet uses, which has no token."""
TOKEN_BYTES_MIN: Final = 16
TOKEN_BYTES_MAX: Final = 4096
_SERVICE: Final = re.compile(r"fleet-reconciler(\.[a-z0-9-]{1,63}\.svc(\.cluster\.local)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """What a request must present."""

    hosts: frozenset[str] = frozenset()
    """Further names to answer to, in lower case, without ports."""
    token_file: Path | None = None
    """Has the bearer token; read for each request, so that it can be rotated. None: no token."""

    def check_token_file(self) -> None:
        """Refuse to start with a token that protects nothing.

        Raises:
            UsageError: The file is missing, unreadable, or its token is too short.
        """
        if self.token_file is None:
            return
        if (why := _why_not_opened(self.token_file)) is not None:
            raise UsageError(str(self.token_file), why, "listen_token_file names it")
        if read_token(self.token_file) is None:
            raise UsageError(
                str(self.token_file),
                f"holds no token of {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes",
                "listen_token_file names it; `openssl rand -hex 32` makes one",
            )

    def answers_to(self, host: str | None) -> bool:
        """Return whether a Host header (or the host of an absolute target) is one of ours.

        None means a client of HTTP/1.0 without the header; browsers always send it.
        """
        if host is None:
            return True
        name = _name_of(host)
        if name is None:
            return False
        known = name == "localhost" or name in self.hosts or _is_address(name)
        return known or _SERVICE.fullmatch(name) is not None

    def admits(self, path: str, authorization: str | None) -> bool:
        """Return whether a request for a path has the required credentials."""
        if self.token_file is None or path in OPEN_PATHS:
            return True
        token = read_token(self.token_file)
        scheme, _, given = (authorization or "").partition(" ")
        if token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode("latin-1", "replace"), token)


NO_RULES: Final = AccessRules()


def read_token(file: Path) -> bytes | None:
    """Return the token in a file without the final newline; None when it is invalid."""
    try:
        with file.open("rb") as stream:
            token = stream.read(TOKEN_BYTES_MAX + 1).strip()
    except OSError:
        return None
    return token if TOKEN_BYTES_MIN <= len(token) <= TOKEN_BYTES_MAX else None


def _why_not_opened(file: Path) -> str | None:
    """Return why the token's file cannot be opened; None when it can."""
    try:
        file.open("rb").close()
    except OSError as error:
        return why_unreadable(error)
    return None


def _name_of(host: str) -> str | None:
    """Return the host of `HOST[:PORT]` in lower case; None when it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in host or not parts.hostname:
        return None
    return parts.hostname.removesuffix(".")


def _is_address(name: str) -> bool:
    """Return whether it is an IP address: without a name look-up, no rebinding is possible."""
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True

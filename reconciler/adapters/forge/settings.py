"""Settings of a forge: kind, repository, token; checked before anything is sent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from reconciler.model.errors import ToolError, UsageError, why_unreadable

ForgeKind = Literal["github", "gitlab"]

_OF_THE_FORGE = "the token of the forge"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_PUBLIC_GITHUB = {"github.com", "ssh.github.com"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeSettings:
    """One repository of one forge."""

    kind: ForgeKind
    api_url: str
    """Root of the REST API, without a slash at its end."""
    repository: str
    """`owner/name`; with GitLab the full path of the project, groups included."""
    token: str = ""
    token_file: Path | None = None
    """Read again at each call, so that a rotated Secret takes effect; overrides `token`."""
    timeout_seconds: float = 10.0
    """Limit of the time until the next part of an answer."""
    answer_seconds: float = 40.0
    """Limit of the time until the whole answer, retries included."""

    def __post_init__(self) -> None:
        """Refuse what would send a token unencrypted or to an invalid address."""
        try:
            parts = urlsplit(self.api_url)
            _ = parts.port
        except ValueError as error:
            raise UsageError("forge", f"is not a valid address: {error}") from None
        if parts.username or parts.password:
            raise UsageError("forge", "the address carries a name or password")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError("forge", f"{self.api_url[:60]!r} is not an http address")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise UsageError("forge", "a token is never sent over plain http", "use https")

    def read_token(self) -> str:
        """Return the current token, without the white space that files and Secrets end with.

        Raises:
            ToolError: The file cannot be read or is empty; the token cannot be sent in a header.
        """
        token = self.token.strip() if self.token_file is None else _read(self.token_file)
        if not (token.isascii() and token.isprintable()):
            place = _OF_THE_FORGE if self.token_file is None else _place(self.token_file)
            raise ToolError(place, "holds more than a token", "one line of ASCII, nothing else")
        return token


def _place(file: Path) -> str:
    """Return the name of a token's file, which is often called `token`, for a message.

    Text after such a word and a colon would be taken for a secret and masked.
    """
    return f"{file} ({_OF_THE_FORGE})"


def _read(file: Path) -> str:
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ToolError(_place(file), why_unreadable(error), "check the path") from error
    if not token:
        raise ToolError(_place(file), "the file is empty", "put the token into it")
    return token


def place_of(repository_url: str) -> tuple[str, str] | None:
    """Return host and repository path of a git address; None for what no forge serves."""
    if "://" in repository_url:
        parts = urlsplit(repository_url)
        host, path = parts.hostname or "", parts.path
        if parts.scheme in {"http", "https"} and parts.port:
            host = f"{host}:{parts.port}"
    elif ":" in repository_url and not repository_url.startswith(("/", ".")):
        left, _, path = repository_url.partition(":")
        host = left.rpartition("@")[2].lower()
    else:
        return None
    path = path.strip("/").removesuffix(".git")
    return (host, path) if host and "/" in path else None


def forge_kind_of(host: str) -> ForgeKind | None:
    """Return the forge that a host's name indicates, None when it indicates none."""
    if "github" in host:
        return "github"
    return "gitlab" if "gitlab" in host else None


def api_of(kind: ForgeKind, host: str) -> str:
    """Return the REST API's usual root on a host.

    Source: GitHub REST (api.github.com, or /api/v3 on a GitHub Enterprise Server) and GitLab REST
    (/api/v4), read 2026-11.
    """
    if kind == "gitlab":
        return f"https://{host}/api/v4"
    return "https://api.github.com" if host in _PUBLIC_GITHUB else f"https://{host}/api/v3"

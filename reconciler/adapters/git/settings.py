"""What the git adapter has to be told, checked before git sees it."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from reconciler.model.errors import UsageError
from reconciler.records.git_address import (
    check_branch,
    check_git_address,
    check_token_is_hidden,
)

_GITFILE = b"gitdir: "
"""Begins the file `.git` of a work tree whose repository lies elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSettings:
    """One followed branch of one remote."""

    url: str
    """`https://`, `ssh://`, `git@host:path`, `file://` or a local path; never with a password."""
    branch: str = "main"
    directory: Path | None = None
    """Where the local copy is kept between runs; None: a temporary one per process."""
    author_name: str = "fleet-reconciler"
    author_email: str = "fleet-reconciler@localhost"
    signing_key_file: Path | None = None
    """SSH private key that signs commits, read again for each; None: they are not signed. An
    ed25519 key, whose signatures do not vary, keeps two loops' equal commits equal."""
    token: str = ""
    """For https; comes from the environment and goes to git through its askpass program."""
    token_file: Path | None = None
    """Read again at each use, so that a rotated Secret takes effect."""
    username: str = "x-access-token"
    """Shown with the token; GitHub and GitLab take any name with a personal access token."""
    depth: int = 50
    """Commits of history to fetch."""
    network_timeout_seconds: float = 60.0
    local_timeout_seconds: float = 30.0
    clone_bytes_max: int = 512 * 1024 * 1024
    file_bytes_max: int = 4 * 1024 * 1024
    files_max: int = 100_000
    """Files of one commit; more are refused."""
    path_bytes_max: int = 1024
    path_depth_max: int = 64

    def __post_init__(self) -> None:
        """Refuse what would leak a secret or be taken for an option of git."""
        parts = check_git_address(
            self.url, "repository", "give it in RECONCILER_GIT_TOKEN or RECONCILER_GIT_TOKEN_FILE"
        )
        check_branch(self.branch, "branch")
        if any(c in self.author_name + self.author_email for c in "<>\n\0"):
            raise UsageError("commit author", "name and address must not contain < > or newlines")
        if self.token or self.token_file is not None:
            check_token_is_hidden(parts, "repository")

    def assert_not_a_file(self) -> None:
        """Raise UsageError for a remote that is a file: git would read all of it as a bundle."""
        path = self.local_path
        try:
            if path is None or not path.is_file():
                return
            with path.open("rb") as stream:
                if stream.read(len(_GITFILE)) == _GITFILE:
                    return
        except OSError:
            return  # git says what is wrong with it
        raise UsageError("repository", f"{self.shown} is a file", "name a git repository")

    @property
    def address(self) -> str:
        """What git is told: it runs in a directory of its own."""
        is_path = ":" not in self.url.split("/", 1)[0]
        return str(Path(self.url).absolute()) if is_path else self.url

    @property
    def local_path(self) -> Path | None:
        """Where the remote lies on this machine; None for one that is reached over a network."""
        if self.address.startswith("file://"):
            return Path(unquote(urlsplit(self.address).path))
        return Path(self.address) if self.address.startswith("/") else None

    @property
    def host(self) -> str:
        """`host` or `host:port` of an http address, else empty."""
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return ""
        return parts.hostname + (f":{parts.port}" if parts.port else "")

    @property
    def shown(self) -> str:
        """The address for people, without a user name."""
        return re.sub(r"(?<=://)[^/@]*@", "", self.url)

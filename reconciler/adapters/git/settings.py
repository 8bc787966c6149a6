"""Settings of the git adapter, checked before git sees them."""

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
"""The first bytes of the file `.git` of a work tree whose repository is elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSettings:
    """One followed branch of one remote."""

    url: str
    """`https://`, `ssh://`, `git@host:path`, `file://` or a local path; never with a password."""
    branch: str = "main"
    directory: Path | None = None
    """Where the local copy is between runs; None: a temporary one per process."""
    author_name: str = "fleet-reconciler"
    author_email: str = "fleet-reconciler@localhost"
    signing_key_file: Path | None = None
    """SSH private key that signs commits, read again for each; None: they are not signed. An
    ed25519 key always makes the same signature, so equal commits of two loops stay equal."""
    token: str = ""
    """For https; comes from the environment and goes to git through its askpass program."""
    token_file: Path | None = None
    """Read again at each use, so that a rotated Secret takes effect."""
    username: str = "x-access-token"
    """Sent with the token; GitHub and GitLab accept any name with a personal access token."""
    depth: int = 50
    """How many commits of history are fetched."""
    network_timeout_seconds: float = 60.0
    local_timeout_seconds: float = 30.0
    clone_bytes_max: int = 512 * 1024 * 1024
    copy_files_max: int = 10_000
    """Of the local copy; with more it is deleted and fetched again. Git keeps some of each commit,
    and every fetch looks at all of them."""
    file_bytes_max: int = 4 * 1024 * 1024
    files_max: int = 100_000
    """The limit of files of one commit; more are refused."""
    path_bytes_max: int = 1024
    path_depth_max: int = 64

    def __post_init__(self) -> None:
        """Refuse what would expose a secret or be taken for an option of git."""
        parts = check_git_address(
            self.url, "repository", "give it in RECONCILER_GIT_TOKEN or RECONCILER_GIT_TOKEN_FILE"
        )
        check_branch(self.branch, "branch")
        if any(c in self.author_name + self.author_email for c in "<>\n\0"):
            raise UsageError("commit author", "name and address must not contain < > or newlines")
        if self.token or self.token_file is not None:
            check_token_is_hidden(parts, "repository")

    def assert_not_a_file(self) -> None:
        """Raise UsageError for a remote that is a file, which git would read as a bundle."""
        path = self.local_path
        try:
            if path is None or not path.is_file():
                return
            with path.open("rb") as stream:
                if stream.read(len(_GITFILE)) == _GITFILE:
                    return
        except OSError:
            return  # git reports what is wrong
        raise UsageError("repository", f"{self.shown} is a file", "name a git repository")

    @property
    def address(self) -> str:
        """Return the address for git, which runs in a directory of its own."""
        is_path = ":" not in self.url.split("/", 1)[0]
        return str(Path(self.url).absolute()) if is_path else self.url

    @property
    def local_path(self) -> Path | None:
        """Return where the remote is on this machine; None for one on a network."""
        if self.address.startswith("file://"):
            return Path(unquote(urlsplit(self.address).path))
        return Path(self.address) if self.address.startswith("/") else None

    @property
    def host(self) -> str:
        """Return `host` or `host:port` of an http address as it is written, else empty.

        git asks for a password in these words, upper case included.
        """
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return ""
        return parts.netloc.rpartition("@")[2]

    @property
    def shown(self) -> str:
        """Return the address for people, without a user name."""
        return re.sub(r"(?<=://)[^/@]*@", "", self.url)

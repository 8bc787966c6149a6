"""Calls git through GitPython: no shell, no prompt, no hook, every call bounded in time."""

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import git

from reconciler.adapters.git.bounded import bounded
from reconciler.adapters.git.failures import Doing, failure
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import ToolError
from reconciler.telemetry.scrubbing import scrub, secrets_of

_ASKPASS = """#!/bin/sh
# Answers git's questions for one host only; holds no secret itself.
case "$1" in
  "Username for 'https://$RECONCILER_GIT_HOST"[\\'/]*|"Username for 'http://$RECONCILER_GIT_HOST"[\\'/]*)
    printf '%s\\n' "$RECONCILER_GIT_USERNAME" ;;
  "Password for 'https://"*"@$RECONCILER_GIT_HOST"[\\'/]*|"Password for 'http://"*"@$RECONCILER_GIT_HOST"[\\'/]*)
    if [ -n "$RECONCILER_GIT_TOKEN_FILE" ]; then exec cat "$RECONCILER_GIT_TOKEN_FILE"; fi
    printf '%s\\n' "$RECONCILER_GIT_TOKEN" ;;
  *) exit 1 ;;
esac
"""
MARKER = "fleet-reconciler-copy"
"""A file that marks a directory as our copy, which may be deleted."""
_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "push.recurseSubmodules": "no",
    "push.gpgSign": "false",
    # Packs are mapped into memory in windows: the second loop's process has a memory limit.
    "core.packedGitWindowSize": "16m",
    "core.packedGitLimit": "128m",
    "pack.threads": "1",
    "pack.windowMemory": "64m",
}
"""Set in the local copy itself, so that the user's files cannot turn these on again."""
_OF_A_REPOSITORY = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ATTR_SOURCE",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DEFAULT_HASH",
        "GIT_DEFAULT_REF_FORMAT",
        "GIT_DIR",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXTERNAL_DIFF",
        "GIT_GLOB_PATHSPECS",
        "GIT_GRAFT_FILE",
        "GIT_ICASE_PATHSPECS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_TEMPLATE_DIR",
        "GIT_WORK_TREE",
    }
)
"""Variables that select a repository and how it is read: a hook or a shell may set them for another
repository. `git rev-parse --local-env-vars` lists most; git 2.30 to 2.47."""
_ENVIRONMENT = threading.Lock()


class GitProcess:
    """Runs git on one bare repository."""

    def __init__(self, settings: GitSettings, directory: Path, private: Path) -> None:
        self._settings = settings
        self._private = private
        self.directory = directory
        self._environment = _environment(settings, private)
        self._secrets = (*_tokens(settings), *secrets_of(os.environ))  # noqa: TID251 - masked only

    def initialise(self) -> None:
        """Create an empty bare repository with our settings, without template hooks."""
        with _disk_errors():
            self._make()

    def _make(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.directory / MARKER).touch()
        self.run("init", "--quiet", "--bare", "--template=", str(self.directory))
        # GitPython's writer only logs a full disk; a setting that could not be written must be an
        # error.
        with (self.directory / "config").open("a") as config:
            for key, value in _CONFIG.items():
                section, _, option = key.partition(".")
                config.write(f"[{section}]\n\t{option} = {value}\n")

    def run(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> bytes:
        """Return the standard output of a local git command.

        Raises:
            ToolError: It failed; the message has git's last error.
        """
        extra = {} if index is None else {"GIT_INDEX_FILE": str(index)}
        status, out, text = self._execute(
            arguments, self._settings.local_timeout_seconds, stdin, extra
        )
        if status != 0:
            raise failure("local", f"git {arguments[0]}", self._settings.branch, text)
        return out

    def commit_tree(self, tree: str, parent: str, message: bytes, date: str) -> bytes:
        """Return the id of a new commit of this tree with this date.

        Raises:
            ToolError: The commit could not be created or signed.
        """
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        sign = [] if self._settings.signing_key_file is None else ["-S"]
        status, out, text = self._execute(
            (*self._signing(), "commit-tree", *sign, tree, "-p", parent, "-F", "-"),
            self._settings.local_timeout_seconds,
            message,
            dates,
        )
        if status != 0:
            raise failure("local", "git commit-tree", self._settings.branch, text)
        return out

    def _signing(self) -> tuple[str, ...]:
        """Return git's options for the signing key; its content is in no argument."""
        file = self._settings.signing_key_file
        if file is None:
            return ()
        copy = self._private / "signing-key"
        try:
            copy.touch(mode=0o600)
            # Secrets are mounted group-readable, which ssh-keygen refuses.
            copy.write_bytes(file.read_bytes())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ToolError(str(file), f"the signing key cannot be read: {reason}") from error
        return ("-c", "gpg.format=ssh", "-c", f"user.signingKey={copy}")

    def ask(self, *arguments: str) -> bytes | None:
        """Return the standard output of a local git command, None when it failed."""
        status, out, _ = self._execute(arguments, self._settings.local_timeout_seconds, b"", {})
        return out if status == 0 else None

    def talk(self, doing: Doing, *arguments: str, branch: str = "") -> bytes:
        """Return the standard output of a command that talks to the remote.

        Raises:
            PortError: The class follows from the remote's answer.
        """
        status, out, text = self._execute(
            arguments, self._settings.network_timeout_seconds, b"", {}
        )
        if status != 0:
            where = f"git {doing} {self._settings.shown}"
            raise failure(doing, where, branch or self._settings.branch, text)
        return out

    def _execute(
        self,
        arguments: tuple[str, ...],
        timeout_seconds: float,
        stdin: bytes,
        extra: Mapping[str, str],
    ) -> tuple[int, bytes, str]:
        environment = {**self._environment, "GIT_DIR": str(self.directory), **extra}
        with _disk_errors(), tempfile.TemporaryFile() as feed:
            feed.write(stdin)
            feed.seek(0)
            try:
                with _without_git_variables():
                    started = git.Git(self.directory).execute(
                        ["git", *arguments],
                        istream=feed,
                        as_process=True,
                        env=environment,
                        start_new_session=True,
                    )
            except git.GitCommandNotFound as missing:
                raise ToolError(
                    "git", "the git program is not on the PATH", "install git 2.30 or newer"
                ) from missing
            process = started.proc
            assert process is not None, "it was started just now"
            with process:
                status, out, error = bounded(process, timeout_seconds)
        return status, out, scrub(error.decode(errors="replace"), self._secrets)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Report a full or read-only disk as an error that does not end the loop."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written: {error.strerror or type(error).__name__}"
        raise ToolError("the local copy of the repository", what, "see --clone") from error


@contextmanager
def _without_git_variables() -> Iterator[None]:
    """Hide variables of another repository: GitPython passes on this process's environment."""
    users = os.environ  # noqa: TID251 - see above
    with _ENVIRONMENT:
        hidden = {name: users.pop(name) for name in _OF_A_REPOSITORY & users.keys()}
        try:
            yield
        finally:
            users.update(hidden)


def _tokens(settings: GitSettings) -> tuple[str, ...]:
    return (settings.token,) if settings.token else ()


def _environment(settings: GitSettings, private: Path) -> Mapping[str, str]:
    environment = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_HTTP_LOW_SPEED_LIMIT": "1000",
        "GIT_HTTP_LOW_SPEED_TIME": "30",
        "GIT_TRACE_CURL": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_AUTHOR_NAME": settings.author_name,
        "GIT_AUTHOR_EMAIL": settings.author_email,
        "GIT_COMMITTER_NAME": settings.author_name,
        "GIT_COMMITTER_EMAIL": settings.author_email,
    }
    users = os.environ  # noqa: TID251 - ssh's own settings stay the user's
    if "GIT_SSH_COMMAND" not in users and "GIT_SSH" not in users:
        environment["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes -o ConnectTimeout=15"
    if settings.host and (settings.token or settings.token_file):
        environment |= askpass(settings, private)
    return environment


def askpass(settings: GitSettings, private: Path) -> Mapping[str, str]:
    """Return the variables that make git use our askpass program, and its answers.

    Args:
        settings: Settings with a token and an http address.
        private: A directory for the program that only its user can read.
    """
    program = private / "askpass"
    program.write_text(_ASKPASS, encoding="utf-8")
    program.chmod(0o700)
    return {
        "GIT_ASKPASS": str(program),
        "RECONCILER_GIT_HOST": settings.host,
        "RECONCILER_GIT_USERNAME": settings.username,
        "RECONCILER_GIT_TOKEN": settings.token,
        # git runs in a directory of its own.
        "RECONCILER_GIT_TOKEN_FILE": str(settings.token_file.absolute())
        if settings.token_file
        else "",
    }

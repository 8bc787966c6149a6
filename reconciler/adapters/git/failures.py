"""Translates git's messages into errors, whose class decides what the loop does next."""

import re
from typing import Final, Literal

from reconciler.model.errors import (
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    OutcomeUnknown,
    ReconcilerError,
    ToolError,
    Unavailable,
)

Doing = Literal["fetch", "push", "local"]

LINE_MAX: Final = 500
"""How many characters of a line are read: patterns take time by the square of what a remote sends.
"""

_FULL = re.compile(
    r"^(?!remote:).*(?:no space left on device|disk quota exceeded)", re.IGNORECASE | re.MULTILINE
)
_UNKNOWN_HOST = re.compile(r"host key verification failed", re.IGNORECASE)
_DENIED = re.compile(
    r"authentication failed|could not read (?:username|password)|permission denied|access denied"
    r"|invalid credentials|returned error: 40[13]|host key verification failed|protected branch"
    r"|hook declined|gh006|gh013|rule violations|not allowed to (?:push|upload)"
    r"|permission to .* denied|marked as read only|unable to read askpass",
    re.IGNORECASE,
)
_MISSING_BRANCH = re.compile(r"couldn't find remote ref", re.IGNORECASE)
_MISSING = re.compile(
    r"repository .*not found|does not appear to be a git repository|returned error: 404"
    r"|repository .* does not exist",
    re.IGNORECASE,
)
_MOVED = re.compile(r"non-fast-forward|fetch first|\[rejected\]|stale info", re.IGNORECASE)
_REJECTED = re.compile(r"\[remote rejected\]", re.IGNORECASE)
_DECLINED = re.compile(r"\[remote rejected\] .*hook declined", re.IGNORECASE)
_NOT_UPDATED = re.compile(
    r"cannot lock ref|failed to update ref|incorrect old value|reference already exists"
    r"|unable to create .*\.lock|directory file conflict",
    re.IGNORECASE,
)
"""Somebody else writes the branch right now, or a branch has the name of a folder of this one."""
_CUT = re.compile(
    r"hung up|early eof|connection (?:reset|closed)|broken pipe|rpc failed", re.IGNORECASE
)
_UNREACHED = re.compile(
    r"could not resolve|unable to access|connection (?:refused|timed out)|timed out|no route"
    r"|network is unreachable|returned error: 5\d\d|could not connect|hung up|early eof"
    r"|connection (?:reset|closed)|rpc failed|temporary failure",
    re.IGNORECASE,
)
_UNREAD = "fatal: could not read from remote repository"
"""What git adds to ssh's message, in lower case: the line before it has the reason."""
_NO_USER = re.compile(r"^(?:error: )?No user exists for uid \d+", re.MULTILINE)
"""ssh and ssh-keygen refuse a user without a line in /etc/passwd."""
_TELLING = ("fatal:", "error:", "remote: error", "remote: fatal", "!")
"""Prefixes of lines that say what is wrong."""
_TIMEOUT = re.compile(r"^Timeout: ", re.MULTILINE)
_TOO_MUCH = re.compile(r"^Output limit: (.*)", re.MULTILINE)


def failure(doing: Doing, where: str, branch: str, text: str) -> ReconcilerError:
    """Return the error for a failed git command.

    Args:
        doing: Whether it talked to the remote or used the local copy only.
        where: The command and address, for the message.
        branch: The remote's branch, for the message.
        text: Scrubbed standard error of git in the C locale.
    """
    text = "\n".join(line[:LINE_MAX] for line in text.splitlines())
    words = _last_words(text)
    if _NO_USER.search(text):
        return ToolError(
            where, words, "ssh needs a line for it in /etc/passwd; the image has 65532"
        )
    if _FULL.search(text):
        return ToolError(where, "no space left on the disk", "free some, or set --clone elsewhere")
    if (over := _TOO_MUCH.match(text)) is not None:
        what = f"git printed {over[1]}: too many files, or trees nested in each other"
        return InputError(where, what, "keep the sector configs in a repository of their own")
    if _TIMEOUT.search(text):
        late = "git got no answer in time"
        return OutcomeUnknown(where, late) if doing == "push" else Unavailable(where, late)
    if doing == "local":
        return ToolError(where, words)
    return _remote_failure(doing, where, branch, text) or ToolError(where, words)


def _remote_failure(doing: Doing, where: str, branch: str, text: str) -> ReconcilerError | None:
    words = _last_words(text)
    if _MISSING_BRANCH.search(text):
        return NotFound(where, f"the branch {branch} does not exist there (any more)")
    if _DENIED.search(text):
        credentials = "check the token, the ssh key and the branch protection"
        known = "put the host's key into the known_hosts file of ssh"
        return Forbidden(where, words, known if _UNKNOWN_HOST.search(text) else credentials)
    if _MISSING.search(text):
        return NotFound(where, words, "check the address; private ones look missing without rights")
    if doing == "push" and (reconciler_error := _push_failure(where, branch, text)) is not None:
        return reconciler_error
    hint = "check the address, the network and the proxy"
    return Unavailable(where, words, hint) if _UNREACHED.search(text) else None


def _push_failure(where: str, branch: str, text: str) -> ReconcilerError | None:
    words = _last_words(text)
    again = "fetch and decide again"
    if _MOVED.search(text):
        return Conflict(where, f"the branch {branch} moved on", again)
    if _NOT_UPDATED.search(text):
        return Conflict(where, f"the remote did not update the branch {branch}: {words}", again)
    if _CUT.search(text):
        return OutcomeUnknown(where, words)
    if _REJECTED.search(text):
        return Forbidden(where, words, "check the rules of the remote for this branch")
    return None


def _last_words(text: str) -> str:
    """Return the line that states the cause of a failure, otherwise the first line.

    ssh writes its own before git's general advice.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    unread = next((i for i, line in enumerate(lines) if line.lower().startswith(_UNREAD)), 0)
    if unread and not any(line.lower().startswith(_TELLING) for line in lines[:unread]):
        return lines[unread - 1][:300]
    declined = next((line for line in lines if _DECLINED.search(line)), "")
    if declined:
        reasons = [line.removeprefix("remote:").strip() for line in lines if _is_reason(line)]
        return "; ".join([declined, *reasons])[:300]
    telling = [line for line in lines if line.lower().startswith(_TELLING)]
    return (telling or lines or ["git failed without a word"])[0][:300]


def _is_reason(line: str) -> bool:
    """Return whether the line has words of a hook of the remote."""
    return line.startswith("remote:") and any(map(str.isalnum, line.removeprefix("remote:")))

"""The Checkout port: which commit a pipeline checked out."""

import git

from reconciler.model.errors import ToolError
from reconciler.ports.repository import CheckoutState, CommitId

_TIMEOUT_SECONDS = 30.0


class GitCheckout:
    """Reads the git work tree around a directory; changes nothing."""

    def state(self, directory: str) -> CheckoutState | None:
        """See Checkout.state."""
        described = _ask(directory, "log", "--max-count=1", "--format=%H%x00%s")
        if described is None:
            return None
        name, _, subject = described.strip().partition("\0")
        changed = _ask(directory, "status", "--porcelain", "--untracked-files=no", "--", ".")
        return CheckoutState(commit=CommitId(name), subject=subject, dirty=bool(changed))


def _ask(directory: str, *arguments: str) -> str | None:
    """Output of a git command in the directory, None when git says no."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        status, out, _ = git.Git(directory).execute(
            command,
            with_extended_output=True,
            with_exceptions=False,
            kill_after_timeout=_TIMEOUT_SECONDS,
        )
    except git.GitCommandNotFound as missing:
        raise ToolError(
            "git", "the git program is not on the PATH", "install git 2.30 or newer"
        ) from missing
    return str(out) if status == 0 else None

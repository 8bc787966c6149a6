"""What Terraform's messages mean."""

import re

from reconciler.adapters.terraform.program import Finished
from reconciler.model.errors import Conflict, Forbidden, ReconcilerError, ToolError

_HINTS = (
    (
        r"(?:query|find|install).*provider|registry\.terraform\.io|no available releases",
        "set RECONCILER_TERRAFORM_PLUGIN_DIR to a provider mirror, or allow the network",
    ),
    (r"unsupported terraform core version", "install the Terraform version that is asked for"),
    (r"no space left on device", "free some disk space"),
    (r"inconsistent dependency lock", "run the plan again with the providers of this machine"),
)
_DENIED = re.compile(
    r"no valid credential|accessdenied|unauthorizedoperation|not authorized|expiredtoken"
    r"|invalidclienttokenid|status code: 403",
    re.IGNORECASE,
)
_LOCK_ID = re.compile(r"^\s*ID:\s*(\S+)", re.MULTILINE)
_LOCK_WHO = re.compile(r"^\s*Who:\s*(\S+)", re.MULTILINE)
_TEXT_MAX = 500


def failure(command: str, finished: Finished, text: str) -> ReconcilerError:
    """The error that a failed call stands for.

    Args:
        command: The sub-command.
        finished: How it ended.
        text: Its scrubbed standard error.
    """
    where = f"terraform {command}"
    if finished.killed or finished.interrupted_by or finished.timed_out:
        return _stopped(where, finished)
    plain = re.sub(r"^[╷│╵ ]+", "", text, flags=re.MULTILINE)
    if "acquiring the state lock" in plain:
        return _locked(where, plain)
    if "Saved plan is stale" in plain:
        return Conflict(where, "the saved plan is stale: the state moved on", "plan again")
    said = _said(plain) or f"failed with exit code {finished.status}"
    if _DENIED.search(plain):
        return Forbidden(where, said, "check the AWS credentials and their rights")
    hints = (hint for pattern, hint in _HINTS if re.search(pattern, plain, re.IGNORECASE))
    return ToolError(where, said, next(hints, ""))


def _stopped(where: str, finished: Finished) -> ToolError:
    if finished.killed:
        return ToolError(
            where, "did not stop when asked and was killed", "the state may still be locked"
        )
    if finished.interrupted_by:
        return ToolError(
            where, f"interrupted by {finished.interrupted_by}; Terraform released its lock"
        )
    return ToolError(where, "took longer than its limit and was stopped")


def _locked(where: str, plain: str) -> Conflict:
    who, lock_id = _LOCK_WHO.search(plain), _LOCK_ID.search(plain)
    holder = f" by {who[1]}" if who else ""
    unlock = f"terraform force-unlock {lock_id[1]}" if lock_id else "terraform force-unlock"
    return Conflict(
        where, f"the state is locked{holder}", f"wait, or when that run is dead: {unlock}"
    )


def _said(plain: str) -> str:
    """Terraform's errors, each from its `Error:` on, on one line, bounded."""
    parts = re.split(r"^(?=Error: )", plain, flags=re.MULTILINE)
    errors = [" ".join(part.split()) for part in parts if part.startswith("Error: ")]
    return " / ".join(errors or [" ".join(plain.split())])[:_TEXT_MAX]

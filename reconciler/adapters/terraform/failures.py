"""Translates Terraform's messages into errors."""

import re

from reconciler.adapters.terraform.program import CommandResult
from reconciler.model.errors import Conflict, Forbidden, ReconcilerError, ToolError

_HINTS = (
    (r"invalid aws region", "correct `regions` in the sector config"),
    (
        # A provider's own errors name it as provider["registry.terraform.io/…"].
        r"(?:query|find|install)[^\n]*provider|(?<!provider\[.)registry\.terraform\.io|no available releases",  # noqa: E501 - one pattern
        "set RECONCILER_TERRAFORM_PLUGIN_DIR to a provider mirror, or allow the network",
    ),
    (r"unsupported terraform core version", "install the Terraform version that is asked for"),
    (r"no configuration files", "name the folder that `reconciler render --out DIR` wrote"),
    (
        r"state migration|-input=false",
        "move the folder's terraform.tfstate away, or terraform init -migrate-state by hand",
    ),
    (r"failed to unlock state", "the ID is in the error of the run that was refused"),
    (
        r"import target does not exist|cannot import non-existent remote object",
        "take it out of imports.tf, which is of use until its apply only",
    ),
    (r"no space left on device", "free some disk space"),
    (r"inconsistent dependency lock", "run the plan again with the providers of this machine"),
)
_DENIED = re.compile(
    r"no valid credential|accessdenied|unauthorizedoperation|not authorized|expiredtoken"
    r"|invalidclienttokenid|status code: 403",
    re.IGNORECASE,
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""`force-unlock` does not accept -no-color."""
_LOCK_ID = re.compile(r"^\s*ID:\s*(\S+)", re.MULTILINE)
_LOCK_WHO = re.compile(r"^\s*Who:\s*(\S+)", re.MULTILINE)
_LOCK_DOING = re.compile(r"^\s*Operation:\s*(?:OperationType)?(\S+)", re.MULTILINE)
_LOCK_SINCE = re.compile(r"^\s*Created:\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
_RESOURCE = re.compile(r"^with (\S.*?),?$", re.MULTILINE)
_DONE = re.compile(r": (?:Creation|Modifications|Destruction) complete after ", re.MULTILINE)
_TEXT_MAX = 500
_ERRORS_MAX = 10
"""How many resources of a failed apply are named, each with its reason."""


def failure(command: str, finished: CommandResult, text: str) -> ReconcilerError:
    """Return the error for a failed call.

    Args:
        command: The sub-command.
        finished: How it ended.
        text: Its scrubbed standard error.
    """
    where = f"terraform {command}"
    if finished.killed or finished.interrupted_by or finished.timed_out:
        return _stopped(where, finished)
    plain = re.sub(r"^[╷│╵ ]+", "", _COLOURS.sub("", text), flags=re.MULTILINE)
    if "acquiring the state lock" in plain:
        return _locked(where, plain)
    if "Saved plan is stale" in plain:
        return Conflict(where, "the saved plan is stale: the state moved on", "plan again")
    problem = _errors_of(plain, command) or f"failed with exit code {finished.status}"
    if _DENIED.search(plain):
        return Forbidden(where, problem, "check the AWS credentials and their rights")
    if command == "apply":
        return ToolError(where, problem, _after_apply(finished, plain))
    hints = (hint for pattern, hint in _HINTS if re.search(pattern, plain, re.IGNORECASE))
    return ToolError(where, problem, next(hints, ""))


def _stopped(where: str, finished: CommandResult) -> ToolError:
    hint = _after_apply(finished) if where.endswith(" apply") else ""
    if finished.killed:
        return ToolError(
            where, "did not stop when asked and was killed", "the state may still be locked"
        )
    if finished.interrupted_by:
        what = f"interrupted by {finished.interrupted_by}; Terraform released its lock"
        return ToolError(where, what, hint)
    return ToolError(where, "took longer than its limit and was stopped", hint)


def _after_apply(finished: CommandResult, plain: str = "") -> str:
    """Return what a failed apply has done, and how to continue.

    Terraform orders resources by their addresses in the configuration, whatever the key of their
    module: it begins with no fleet after one launch template has failed, nor when it is run again.
    """
    done = f"{len(_DONE.findall(finished.out))} changes were carried out and are in the state"
    if any(".aws_launch_template." in address for address in _RESOURCE.findall(plain)):
        return (
            f"{done}; no fleet is made or changed until every launch template is there: correct"
            " what failed, or take that fleet out, and plan again"
        )
    return f"{done}; plan again for the rest"


def _locked(where: str, plain: str) -> Conflict:
    who, lock_id = _LOCK_WHO.search(plain), _LOCK_ID.search(plain)
    doing, since = _LOCK_DOING.search(plain), _LOCK_SINCE.search(plain)
    holder = f" by {who[1]}" if who else ""
    holder += f" for {doing[1].lower()}" if doing else ""
    holder += f" since {since[1]} UTC" if since else ""
    unlock = f"reconciler ci unlock --dir DIR {lock_id[1]}" if lock_id else "reconciler ci unlock"
    return Conflict(
        where, f"the state is locked{holder}", f"wait, or when that run is dead: {unlock}"
    )


def _errors_of(plain: str, command: str) -> str:
    """Return Terraform's errors, each from its `Error:` on, on one line, bounded.

    Errors of an apply begin with their resource.
    """
    parts = re.split(r"^(?=Error: )", plain, flags=re.MULTILINE)
    errors = [part for part in parts if part.startswith("Error: ")]
    if command != "apply" or not errors:
        return " / ".join(" ".join(e.split()) for e in errors or [plain])[:_TEXT_MAX]
    texts = [_of_resource(error) for error in errors[:_ERRORS_MAX]]
    more = [f"{len(errors) - _ERRORS_MAX} more"] if len(errors) > _ERRORS_MAX else []
    return f"{len(errors)} failed: " + " / ".join([*texts, *more])


def _of_resource(error: str) -> str:
    address = _RESOURCE.search(error)
    reason = " ".join(error.split("\n\n", maxsplit=1)[0].removeprefix("Error: ").split())[
        :_TEXT_MAX
    ]
    return f"{address[1]}: {reason}" if address else reason

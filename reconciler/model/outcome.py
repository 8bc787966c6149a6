"""The result of executing one action."""

from dataclasses import dataclass
from typing import Literal

from reconciler.model.actions import AnyAction
from reconciler.model.errors import (
    Conflict,
    NotFound,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
)

OutcomeKind = Literal["applied", "already-done", "refused", "failed", "unknown", "dry-run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one action.

    `refused`: a precondition no longer held or the server refused for now; plan again. `failed`: an
    error that retrying did not resolve. `unknown`: sent, reply lost; observe again.
    """

    action: AnyAction
    kind: OutcomeKind
    detail: str = ""
    error: str = ""
    """The class of the error, such as `Throttled`; empty when there was none."""
    seconds: float = 0.0

    @property
    def settled(self) -> bool:
        """Return whether nothing is left to be retried."""
        return self.kind in {"applied", "already-done", "dry-run"}


def kind_of_error(error: PortError) -> OutcomeKind:
    """Return `refused` if a new plan resolves it, `failed` if a person may have to look."""
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    if isinstance(error, Refused | Conflict | NotFound | Throttled):
        return "refused"
    return "failed"

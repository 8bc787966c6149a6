"""What came of carrying out one action."""

from dataclasses import dataclass
from typing import Literal

from reconciler.model.actions import AnyAction

OutcomeKind = Literal["applied", "already-done", "refused", "failed", "unknown", "dry-run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One action's end.

    `refused`: a precondition no longer held or the server said no for now; plan again.
    `failed`: an error that retrying did not mend. `unknown`: sent, reply lost; observe again.
    """

    action: AnyAction
    kind: OutcomeKind
    detail: str = ""
    seconds: float = 0.0

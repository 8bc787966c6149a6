"""The batching windows that the reconciler says it waited, by its own log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.loops.reconcile_loop import BATCH_MAX_SECONDS

_ROUNDING_SECONDS = 0.05
"""The log has milliseconds, and is written a little after the cycle's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One logged cycle; wall-clock seconds."""

    began: float
    ended: float
    window_seconds: float
    """What its changes waited for others to come; 0 when none began it."""


def cycles(events: Sequence[Mapping[str, Any]]) -> list[Cycle]:
    """The log's `cycle_ended`, in order; those that changed something are among them."""
    return [_cycle(event) for event in events]


def window_of(found: Sequence[Cycle], moment: float) -> float | None:
    """The window of the cycle in which EC2 was called at a moment; None: it is not logged yet.

    Never more than batching may wait (docs/scale-up.md).
    """
    for cycle in found:
        if cycle.began - _ROUNDING_SECONDS <= moment <= cycle.ended + _ROUNDING_SECONDS:
            return min(cycle.window_seconds, BATCH_MAX_SECONDS)
    return None


def _cycle(event: Mapping[str, Any]) -> Cycle:
    ended = datetime.fromisoformat(event["at"]).timestamp()
    phases = ("observe_seconds", "plan_seconds", "act_seconds")
    return Cycle(
        began=ended - sum(event[phase] for phase in phases),
        ended=ended,
        window_seconds=event["gathered_seconds"],
    )

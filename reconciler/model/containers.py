"""The unusual states of a pod's containers; nothing else of their status is kept."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ContainerKind = Literal["container", "init", "ephemeral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The unusual state of one container: it waits, has ended, or was restarted."""

    kind: ContainerKind
    waiting: str = ""
    """Why it waits, such as `CrashLoopBackOff`; empty if it does not."""
    terminated: str = ""
    """Why it ended, such as `OOMKilled`; empty while it has not."""
    exit_code: int | None = None
    """None while it has not ended."""
    restarts: int = 0
    ended_at: datetime | None = None
    """When it last ended, before its last restart too; None when that is not known."""

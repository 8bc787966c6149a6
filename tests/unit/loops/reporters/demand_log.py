"""A recorder's log of demand, and cycles that it is told of."""

import io
from datetime import datetime, timedelta
from typing import Any

from reconciler.loops.reporters.demand_recorder import DemandRecorder
from reconciler.model.cluster import Pod
from reconciler.model.demand import Demand, PodDemand
from reconciler.planner.planner import plan
from reconciler.records.demand import read_demand
from tests.builders import NOW, make_fleet_settings, make_pod, make_settings, make_snapshot

KEEP_SECONDS = 14 * 86_400.0


class Log:
    """Keeps lines, or refuses them."""

    def __init__(self) -> None:
        self.lines = b""
        self.refuses = False
        self.counts: list[str] = []

    def append(self, at: datetime, lines: bytes) -> bool:
        if not self.refuses:
            self.lines += lines
        return not self.refuses

    def demand(self) -> Demand:
        """What a simulation reads."""
        return read_demand(io.BytesIO(self.lines), "recorded")

    def pods(self) -> dict[str, PodDemand]:
        return {line.id: line for line in self.demand().lines if isinstance(line, PodDemand)}


SETTINGS = make_settings(make_fleet_settings("small"))


def record(recorder: DemandRecorder, *pods: Pod, after: float = 0.0) -> None:
    """One cycle's plan, so many seconds after the first."""
    snapshot = make_snapshot(*pods, at=NOW + timedelta(seconds=after))
    recorder.plan_made(snapshot, plan(snapshot, SETTINGS))


def made(name: str, **changed: Any) -> Pod:
    """A pod that was created a moment before the first plan."""
    return make_pod(name, created_at=NOW - timedelta(seconds=5), **changed)

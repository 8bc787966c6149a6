"""Observes the cluster: when each pod was created, bound and ended; how many nodes there were."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reconciler.model.cluster import Pod
from reconciler.model.errors import ObservationError
from reconciler.model.snapshot import ClusterState
from reconciler.ports.cluster import Cluster

POLL_SECONDS = 0.5


def wall_clock() -> datetime:
    """Return the current time, comparable with the times of the emulated AWS."""
    return datetime.now(UTC)  # noqa: TID251 - the demo measures real processes


@dataclass(slots=True)
class PodLife:
    """What was observed of one pod."""

    sector: str
    seen_at: datetime
    bound_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Counts at one time."""

    at: datetime
    nodes: dict[str, int]
    """Ready nodes per fleet."""
    pending: int
    running: int
    finished: int


@dataclass(slots=True)
class Follower:
    """A thread that observes every change; `wait_until` waits for a state."""

    cluster: Cluster
    lives: dict[str, PodLife] = field(default_factory=dict)
    """By uid, without pods of DaemonSets."""
    moments: list[Moment] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to observe."""
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def wait_until(
        self,
        holds: Callable[[Moment], bool],
        timeout_seconds: float,
        show: Callable[[str], None],
    ) -> bool:
        """Wait until a moment satisfies `holds`; return False after the timeout."""
        deadline = wall_clock().timestamp() + timeout_seconds
        with self._changed:
            while not (self.moments and holds(self.moments[-1])):
                left = deadline - wall_clock().timestamp()
                if left <= 0:
                    return False
                self._changed.wait(min(left, POLL_SECONDS))
                if self.moments:
                    show(described(self.moments[-1]))
        return True

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                self._record(self.cluster.observe())
            except ObservationError:
                self._stopping.wait(POLL_SECONDS)
            self.cluster.wait_for_change(POLL_SECONDS)

    def _record(self, state: ClusterState) -> None:
        now = wall_clock()
        for pod in state.pods:
            if not (pod.daemon or pod.mirror):
                self._pod(pod, now)
        live = [p for p in state.pods if not (p.daemon or p.mirror)]
        nodes: dict[str, int] = {}
        for node in state.nodes:
            if node.ready:
                fleet = node.labels.get("fleet", "other")
                nodes[fleet] = nodes.get(fleet, 0) + 1
        moment = Moment(
            at=now,
            nodes=nodes,
            pending=sum(p.phase == "Pending" for p in live),
            running=sum(p.phase == "Running" for p in live),
            finished=sum(life.finished_at is not None for life in self.lives.values()),
        )
        with self._changed:
            self.moments.append(moment)
            self._changed.notify_all()

    def _pod(self, pod: Pod, now: datetime) -> None:
        life = self.lives.get(pod.key.uid)
        if life is None:
            sector = pod.spec.node_selector.get("sector", "")
            life = self.lives[pod.key.uid] = PodLife(sector=sector, seen_at=now)
        if life.bound_at is None and pod.node_name is not None:
            life.bound_at = now
        if life.finished_at is None and pod.finished:
            life.finished_at = now


def described(moment: Moment) -> str:
    """Return one line about a moment."""
    nodes = ", ".join(f"{fleet} {count}" for fleet, count in sorted(moment.nodes.items()))
    return (
        f"pods: {moment.pending} pending, {moment.running} running, {moment.finished} done   "
        f"nodes: {nodes or 'none'}"
    )

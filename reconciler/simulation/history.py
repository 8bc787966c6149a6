"""Records what happens while a simulation runs; figures are computed afterwards."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from reconciler.adapters.memory import MemoryWorld
from reconciler.loops.workloads import Workload
from reconciler.model.actions import DeletePod, EvictPod
from reconciler.model.cluster import Pod, PodSpec
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.simulation.long_waits import LONG_SECONDS, LongWait, LongWaits

HOUR_SECONDS = 3600.0
MINUTE_SECONDS = 60.0
POINTS = 480
"""How many points each series over time has in a report."""
MOMENTS_MAX = 3
MOMENT_APART_SECONDS = 3600.0
HOURS_KEPT = 3 * (MOMENTS_MAX - 1) + 1
"""Each moment that is shown keeps away those of its hour and of the two beside it."""
WAIT_COUNTED_SECONDS = 3600.0
"""What counts of one pod's wait in a moment: otherwise a pod that fits nowhere would always win."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The cluster at a time when many pods waited, as the program observed it."""

    seconds: float
    """Since the beginning."""
    score: float
    """Seconds that all pods without a node had waited, in total; an hour of each at most."""
    waiting: int
    snapshot: Snapshot


@dataclass(slots=True)
class _Running:
    """Pods of one spec that have a node, without those of DaemonSets."""

    spec: PodSpec
    count: int
    since: float
    hours: dict[int, float]
    """Pod-seconds by hour."""


class History:
    """Observes a world.

    Args:
        world: The world.
        existed_at: When the demand's recording began, if it is one. Pods of that time existed
            before, and how long they waited is not known.
    """

    def __init__(self, world: MemoryWorld, existed_at: datetime | None = None) -> None:
        self._clock = world.clock
        self._start = world.clock.now()
        self._existed_at = existed_at
        self.waits = array("d")
        """From each pod's creation to its node, in seconds; to its end if it never had one."""
        self.existed = 0
        """Pods that are not in `waits`, as they existed when the recording began."""
        self.deleted_waiting = 0
        """Pods that were deleted, or finished, before they had a node."""
        self._long_waits = LongWaits()
        self.evictions: Counter[str] = Counter()
        """By the policy that requested them."""
        self._waiting_by_minute: dict[int, int] = {}
        self._waiting_noted = 0.0
        """Until when `_waiting_by_minute` is complete, in seconds since the beginning."""
        self._worst: dict[int, Moment] = {}
        """The worst moment of each of some hours, as many as `moments` may need."""
        self.plans = 0
        self.created = 0
        """Pods, including those that controllers made as replacements, without those of
        DaemonSets."""
        self._running: dict[int, _Running] = {}
        self._waiting: dict[str, datetime] = {}
        world.objects.watchers.append(self._occupies)
        world.objects.pod_watchers.append(self._changed)
        self._pods = world.pods

    def _now(self) -> float:
        return self._clock.monotonic_seconds()

    def _changed(self, before: Pod | None, after: Pod | None) -> None:
        """Handle a pod that was created, deleted or bound: it may begin or end to wait."""
        pod = after or before
        assert pod is not None
        if pod.daemon:
            return
        uid = pod.key.uid
        self._note_waiting()
        self.created += before is None
        if after is not None and pod.node_name is None and not (pod.finished or pod.gated):
            self._waiting.setdefault(uid, pod.created_at or self._start)
            return
        created_at = self._waiting.pop(uid, None)
        if created_at is not None and pod.node_name is None:
            self._ended_waiting(pod, created_at)

    def _ended_waiting(self, pod: Pod, created_at: datetime) -> None:
        """Record a pod that ended without a node: it would have waited for at least this long."""
        self.deleted_waiting += 1
        self._waited(pod, created_at, deleted=True)

    def _waited(self, pod: Pod, created_at: datetime, *, deleted: bool = False) -> None:
        """Record how long a pod has waited, which is over."""
        seconds = (self._clock.now() - created_at).total_seconds()
        if self._existed(created_at):
            self.existed += 1
        else:
            self.waits.append(seconds)
        self._long_waits.add(pod, seconds, deleted=deleted)

    def _note_waiting(self) -> None:
        """Record how many pods have waited until now; a number that lasts no time is left out."""
        now, count = self._now(), len(self._waiting)
        if count and now > self._waiting_noted:
            by_minute = self._waiting_by_minute
            first = int(self._waiting_noted // MINUTE_SECONDS)
            for minute in range(first, ceil(now / MINUTE_SECONDS)):
                by_minute[minute] = max(by_minute.get(minute, 0), count)
        self._waiting_noted = now

    def waiting_by_minute(self) -> dict[int, int]:
        """Return the maximum of pods without a node in each minute since the beginning.

        Minutes without such pods are left out. Call it at the end.
        """
        self._note_waiting()
        return self._waiting_by_minute

    @property
    def waiting(self) -> int:
        """Return how many pods have no node."""
        return len(self._waiting)

    def long_waits(self, number: int) -> list[tuple[Workload, LongWait]]:
        """Return the workloads whose pods waited longest, the worst first; call it at the end."""
        now = self._clock.now()
        still = (
            (pod, (now - self._waiting[pod.key.uid]).total_seconds())
            for pod in self._pods()
            if pod.key.uid in self._waiting
        )
        return self._long_waits.worst(number, still)

    def _occupies(self, pod: Pod, begins: bool) -> None:  # noqa: FBT001 - as watchers are called
        if pod.daemon:  # their number follows that of nodes, on which the bound must not depend
            return
        now = self._now()
        running = self._running.get(id(pod.spec))
        if running is None:
            running = self._running[id(pod.spec)] = _Running(pod.spec, 0, now, {})
        _add(running, now)
        running.count += 1 if begins else -1
        if begins:
            self._waited(pod, pod.created_at or self._start)

    def planned(self, snapshot: Snapshot, _plan: Plan) -> None:
        """Record the moment of a plan."""
        self.plans += 1
        count = len(self._waiting)
        if not count:
            return
        now = self._clock.now()
        score = sum(self._counted(created, now) for created in self._waiting.values())
        if not score and any(map(self._existed, self._waiting.values())):
            return
        moment = Moment(seconds=self._now(), score=score, waiting=count, snapshot=snapshot)
        self._keep(moment)

    def _existed(self, created_at: datetime) -> bool:
        """Return whether a pod existed when the recording began, and had its node then."""
        return self._existed_at is not None and created_at <= self._existed_at

    def _counted(self, created_at: datetime, now: datetime) -> float:
        """Return what counts of a pod's wait in a moment.

        One that existed before waits for a boot only because the simulation begins without nodes.
        """
        usual = LONG_SECONDS if self._existed(created_at) else 0.0
        return min(WAIT_COUNTED_SECONDS, max(0.0, (now - created_at).total_seconds() - usual))

    def _keep(self, moment: Moment) -> None:
        """Keep the worst moment of each hour, and of the hours the worst."""
        hour = int(moment.seconds // HOUR_SECONDS)
        known = self._worst.get(hour)
        if known is not None and moment.score <= known.score:
            return
        self._worst[hour] = moment
        if len(self._worst) > HOURS_KEPT:
            del self._worst[min(self._worst, key=lambda each: (self._worst[each].score, -each))]

    @property
    def moments(self) -> Sequence[Moment]:
        """Return the worst moments, at least an hour apart, the worst first."""
        found: list[Moment] = []
        for moment in sorted(self._worst.values(), key=lambda m: (-m.score, m.seconds)):
            apart = (abs(moment.seconds - other.seconds) for other in found)
            if len(found) < MOMENTS_MAX and all(n >= MOMENT_APART_SECONDS for n in apart):
                found.append(moment)
        return found

    def acted(self, outcome: Outcome) -> None:
        """Count an action that was executed."""
        if outcome.kind == "applied" and isinstance(outcome.action, EvictPod | DeletePod):
            self.evictions[outcome.action.policy] += 1

    def pod_seconds(self) -> dict[int, dict[PodSpec, float]]:
        """Return how long pods of each spec had nodes, by hour, without those of DaemonSets."""
        found: dict[int, dict[PodSpec, float]] = {}
        for running in self._running.values():
            _add(running, self._now())
            for hour, seconds in running.hours.items():
                of_hour = found.setdefault(hour, {})
                of_hour[running.spec] = of_hour.get(running.spec, 0.0) + seconds
        return found

    def at(self, seconds: float) -> datetime:
        """Return the time this many seconds after the beginning."""
        return self._start + timedelta(seconds=seconds)


def _add(running: _Running, now: float) -> None:
    """Count what has run since the last change, hour by hour."""
    if running.count:
        at = running.since
        while at < now:
            hour = int(at // HOUR_SECONDS)
            end = min(now, (hour + 1) * HOUR_SECONDS)
            running.hours[hour] = running.hours.get(hour, 0.0) + running.count * (end - at)
            at = end
    running.since = now

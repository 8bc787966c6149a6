"""Explanations of the running loop's last plan, for the page and for `reconciler explain`.

An explanation needs another plan, on copies. So only one is made at a time, few questions wait for
it, and the result for a workload is kept for minutes, unless its reasons or the config change.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from reconciler.loops.workloads import Pending, Workload
from reconciler.machine.garbage import garbage_collection_paused
from reconciler.model.errors import ReconcilerError, Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.planner.explain.answers import Changes, Explanations
from reconciler.planner.explain.explain import explain
from reconciler.planner.settings import PlannerSettings
from reconciler.telemetry import events
from reconciler.web.board import StatusBoard
from reconciler.web.view import ConfigInForce, View

WORKLOADS_AT_ONCE: Final = 20
REMEDIES_MAX: Final = 1_000
SEARCHED_AGAIN_AFTER: Final = timedelta(minutes=1)
"""Amounts and times of a remedy depend on what runs and what is requested, which changes."""
SHOWN_FOR: Final = timedelta(minutes=5)
"""A remedy that could not be searched for again, as plans take too long by now, is not shown for
longer."""
PLAN_SECONDS_MAX: Final = 2.0
"""Where a plan takes longer, remedies are only searched on request: the loop needs the CPU."""
WAIT_SECONDS: Final = 10.0
"""How long a question waits for the previous one."""
QUESTIONS_MAX: Final = 4
"""How many questions are answered or wait. Each takes a thread of the server, and one client could
keep health checks out with more."""
ASKED_MAX: Final = 50
"""How many names one question may have."""

_Key = tuple[Workload, tuple[tuple[str, tuple[tuple[str, Region], ...]], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Names that are to be explained."""

    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    fleets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remedy:
    change: Changes
    config: ConfigInForce
    """In force when it was searched for."""
    plan_at: datetime
    """The time of the plan from which it was found."""


class Explainer:
    """Answers questions about the board's last plan; thread-safe.

    Args:
        board: Has the plan and its snapshot.
        settings: The settings in force; None: nothing can be explained here.
    """

    def __init__(
        self, board: StatusBoard, settings: Callable[[], PlannerSettings] | None = None
    ) -> None:
        self._board = board
        self._settings = settings
        self._places = threading.BoundedSemaphore(QUESTIONS_MAX)
        self._one_at_a_time = threading.Lock()
        self._lock = threading.Lock()
        self._remedies: OrderedDict[_Key, _Remedy] = OrderedDict()
        self._worker: threading.Thread | None = None

    def answer(self, asked: Question) -> Explanations:
        """Return the answers, from the last plan.

        Raises:
            UsageError: There is no such pod, node or fleet.
            Unavailable: There is no plan yet.
            Throttled: Too many questions at once.
        """
        busy = Throttled("/api/explain", "another explanation is being made")
        if not self._places.acquire(blocking=False):
            raise busy
        try:
            if not self._one_at_a_time.acquire(timeout=WAIT_SECONDS):
                raise busy
            try:
                return self._explained(self._board.view, asked)
            finally:
                self._one_at_a_time.release()
        finally:
            self._places.release()

    def remedies(self, pending: Iterable[Pending]) -> dict[Workload, Changes]:
        """Return the known remedies of workloads, and search for the others in the background.

        An empty change means that nothing that was tried would help.
        """
        wanted = [each for each in pending if each.refusals]
        view = self._board.view
        at = None if view.snapshot is None else view.snapshot.at
        with self._lock:
            known = {}
            for each in wanted:
                remedy = self._remedies.get(_key(each))
                if at is not None and remedy is not None and remedy.config == view.config:
                    known[each.workload] = (remedy.change, at - remedy.plan_at)
            missing = _to_search(wanted, {each: age for each, (_, age) in known.items()})
            if missing and self._worker is None and self._may_look():
                self._worker = threading.Thread(
                    target=self._look, args=(missing,), name="remedies", daemon=True
                )
                self._worker.start()
        return {workload: change for workload, (change, age) in known.items() if age <= SHOWN_FOR}

    def wait(self, seconds: float) -> None:
        """Wait for the search in the background, if one is running."""
        worker = self._worker
        if worker is not None:
            worker.join(seconds)

    def _may_look(self) -> bool:
        cycle = self._board.view.last_cycle
        return self._settings is not None and (
            cycle is None or cycle.plan_seconds <= PLAN_SECONDS_MAX
        )

    def _look(self, missing: Sequence[Pending]) -> None:
        try:
            remedies = self._changes_for([each for each in missing if each.example is not None])
            with self._lock:
                self._remedies.update(remedies)
                while len(self._remedies) > REMEDIES_MAX:
                    self._remedies.popitem(last=False)
        except ReconcilerError:
            pass  # the state has changed: the next page asks again
        except Exception as error:  # noqa: BLE001 - a page without remedies is a page all the same
            structlog.get_logger().error(events.REQUEST_FAILED, path="remedies", exc_info=error)
        finally:
            with self._lock:
                self._worker = None

    def _changes_for(self, missing: Sequence[Pending]) -> dict[_Key, _Remedy]:
        """Return the changes for all of them, from one plan."""
        asked = Question(pods=tuple(str(each.example) for each in missing))
        with self._one_at_a_time:
            view = self._board.view
            pod_explanations = self._explained(view, asked).pods
        assert view.snapshot is not None, "without one nothing was explained"
        return {
            _key(each): _Remedy(change=pod.change, config=view.config, plan_at=view.snapshot.at)
            for each, pod in zip(missing, pod_explanations, strict=True)
        }

    def _explained(self, view: View, asked: Question) -> Explanations:
        if view.plan is None or view.snapshot is None or self._settings is None:
            raise Unavailable("/api/explain", "there is no plan yet")
        with garbage_collection_paused():
            return explain(
                view.snapshot,
                self._settings(),
                view.plan,
                pods=asked.pods,
                nodes=asked.nodes,
                fleets=asked.fleets,
            )


def _to_search(wanted: Sequence[Pending], ages: Mapping[Workload, timedelta]) -> list[Pending]:
    """Return those to search for next: first those without a remedy, then those with the oldest."""

    def age(pending: Pending) -> timedelta:
        return ages.get(pending.workload, timedelta.max)

    oldest_first = sorted(wanted, key=age, reverse=True)
    return [each for each in oldest_first if age(each) > SEARCHED_AGAIN_AFTER][:WORKLOADS_AT_ONCE]


def _key(pending: Pending) -> _Key:
    """Return a key without details, whose figures and times change with each plan."""
    return pending.workload, tuple(
        sorted({(refusal.code, refusal.fleets) for refusal in pending.refusals})
    )

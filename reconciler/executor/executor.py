"""The order of execution: a failure stops only the actions that depend on it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from reconciler.executor.handlers import annotate, apply
from reconciler.executor.ports import Ports
from reconciler.executor.rate_limited_ports import RateLimitedPorts
from reconciler.executor.rate_limiter import RateLimiter
from reconciler.executor.runners import PARALLEL_MAX, Runner, one_by_one
from reconciler.executor.terminations import Targets, end_together
from reconciler.model.action_order import Stage, staged, subject_of
from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeletePod,
    EvictPod,
    SetCapacity,
    TerminateInstance,
)
from reconciler.model.errors import PortError, error_name
from reconciler.model.ids import PodKey
from reconciler.model.outcome import Outcome, OutcomeKind, kind_of_error

Report = Callable[[Outcome], None]
NOTES_MIN = PARALLEL_MAX
"""At least this many notes are written per plan, so that all are written eventually."""
EVICTING_SECONDS = 10.0
"""For this long a plan evicts pods while new pods wait for the next plan, which evicts the
others: with a webhook that does not answer each eviction takes as long as its timeout."""


def _never() -> bool:
    return False


class Executor(Protocol):
    """Executes plans."""

    @property
    def dry_run(self) -> bool:
        """Return whether nothing is changed; then nothing may be saved or reported either."""
        ...

    def execute(
        self,
        actions: Iterable[AnyAction],
        report: Report,
        demand_waits: Callable[[], bool] = _never,
    ) -> tuple[Outcome, ...]:
        """Execute the actions in order; `report` is called for each, in the caller's thread.

        Args:
            actions: What to do.
            report: Called with each outcome, in the order of the outcomes that are returned.
            demand_waits: Returns whether new pods wait for the next plan; then notes are left to
                it.
        """
        ...


def in_steps(actions: Iterable[AnyAction]) -> Iterator[tuple[AnyAction, ...]]:
    """Yield the actions in order, in steps that are one call each.

    Terminations that lower the same fleet's target are one step: the fleet is modified once for all
    of them. So are consecutive annotations of one node. Everything else keeps its order, and
    nothing is moved ahead of an earlier action on the same subject.
    """
    left = list(actions)
    while left:
        first = left.pop(0)
        group = [first]
        if isinstance(first, AnnotateNode):
            while left and _is_noted_with(first, left[0]):
                group.append(left.pop(0))
        if isinstance(first, TerminateInstance) and first.decrement:
            busy: set[str] = set()
            for each in list(left):
                if _ends_with(first, each) and subject_of(each) not in busy:
                    group.append(each)
                    left.remove(each)
                else:
                    busy.add(subject_of(each))
        yield tuple(group)


def _is_noted_with(first: AnnotateNode, other: AnyAction) -> bool:
    return isinstance(other, AnnotateNode) and other.node == first.node


def _ends_with(first: TerminateInstance, other: AnyAction) -> bool:
    return (
        isinstance(other, TerminateInstance)
        and other.decrement
        and (other.provider, other.region, other.fleet_id)
        == (first.provider, first.region, first.fleet_id)
    )


def _independent(actions: Iterable[AnyAction]) -> list[tuple[AnyAction, ...]]:
    """Return the actions of one stage in groups that do not depend on each other.

    Terminations of one fleet are one group, as each lowers the target that the next one checks.
    Evictions from a node are independent: a refused one stops none of the others. All other actions
    on one subject are a group.
    """
    groups: dict[str, list[AnyAction]] = {}
    for action in actions:
        key = subject_of(action)
        if isinstance(action, EvictPod | DeletePod):
            key = f"pod {action.pod}"
        if isinstance(action, TerminateInstance):
            key = f"fleet {action.provider}/{action.region}/{action.fleet_id}"
        groups.setdefault(key, []).append(action)
    return [tuple(group) for group in groups.values()]


def _evicted_pods(group: Iterable[AnyAction]) -> list[PodKey]:
    return [action.pod for action in group if isinstance(action, EvictPod)]


class LiveExecutor:
    """Acts on the live cluster and cloud.

    Args:
        ports: The cluster and the clouds.
        monotonic_seconds: A clock that never jumps.
        stopping: Whether the program is to stop; actions that have not begun are then not executed.
        limiter: How often each API may be called; default: the usual limits.
        runner: How independent actions are executed; default: one after the other.
    """

    def __init__(
        self,
        ports: Ports,
        monotonic_seconds: Callable[[], float],
        stopping: Callable[[], bool] = _never,
        limiter: RateLimiter | None = None,
        runner: Runner[list[Outcome]] = one_by_one,
    ) -> None:
        self._ports = RateLimitedPorts(ports, limiter or RateLimiter(monotonic_seconds))
        self._monotonic_seconds = monotonic_seconds
        self._late: dict[PodKey, int] = {}
        """In how many plans in a row the eviction of a pod had not begun in time."""
        self._stopping = stopping
        self._runner = runner

    @property
    def dry_run(self) -> bool:
        """Return False: it acts."""
        return False

    def execute(
        self,
        actions: Iterable[AnyAction],
        report: Report,
        demand_waits: Callable[[], bool] = _never,
    ) -> tuple[Outcome, ...]:
        """Execute the actions stage by stage; after a failure the subject of the action is skipped.

        A pod that cannot be moved does not stop others of its node, but later stages skip the node.
        Forced actions are not skipped.
        Within a stage independent actions run in parallel. As soon as new pods wait, all but the
        first of the notes at the end are left to the next plan, which makes them again; so are
        evictions that have not begun after some seconds.
        """
        failed: dict[str, str] = {}
        targets: Targets = {}
        outcomes: list[Outcome] = []
        for stage, listed in groupby(staged(actions), key=itemgetter(0)):
            groups = _independent(action for _, action in listed)
            if stage is Stage.EVICT:
                groups = self._with_late_ones_first(groups)
            until = self._monotonic_seconds() + EVICTING_SECONDS
            # The failures of a group stay its own until the stage ends.
            work = [
                partial(self._evicted, group, dict(failed), targets, demand_waits, until)
                if stage is Stage.EVICT
                else partial(
                    self._group,
                    group,
                    dict(failed),
                    targets,
                    demand_waits if stage is Stage.NOTE and number >= NOTES_MIN else _never,
                )
                for number, group in enumerate(groups)
            ]
            for done in self._runner(work):
                for outcome in done:
                    _note_outcome(outcome, failed, targets)
                    outcomes.append(outcome)
                    report(outcome)
        return tuple(outcomes)

    def _with_late_ones_first(
        self, groups: Iterable[tuple[AnyAction, ...]]
    ) -> list[tuple[AnyAction, ...]]:
        """Return evictions in order, those first for which the last plans had no time.

        Otherwise pods whose evictions hang would take all the time of each plan.
        """
        late = self._late
        ordered = sorted(
            groups, key=lambda group: -sum(late.get(pod, 0) for pod in _evicted_pods(group))
        )
        listed = {pod for group in ordered for pod in _evicted_pods(group)}
        self._late = {pod: count for pod, count in late.items() if pod in listed}
        return ordered

    def _evicted(
        self,
        actions: Sequence[AnyAction],
        failed: dict[str, str],
        targets: Targets,
        demand_waits: Callable[[], bool],
        until: float,
    ) -> list[Outcome]:
        """Return the outcomes of a pod's eviction.

        One that is too late keeps the node like a refused one.
        """
        if self._monotonic_seconds() >= until and demand_waits():
            for pod in _evicted_pods(actions):
                self._late[pod] = self._late.get(pod, 0) + 1
            why = "new pods wait for the next plan, which evicts it"
            return [Outcome(action=action, kind="refused", detail=why) for action in actions]
        for pod in _evicted_pods(actions):
            self._late.pop(pod, None)
        return self._group(actions, failed, targets, _never)

    def _group(
        self,
        actions: Sequence[AnyAction],
        failed: dict[str, str],
        targets: Targets,
        gives_way: Callable[[], bool],
    ) -> list[Outcome]:
        """Return the outcomes of actions that depend on each other; skipped actions have none."""
        outcomes: list[Outcome] = []
        for step in in_steps(actions):
            if self._stopping() or gives_way():
                break
            for outcome in self._step(step, failed, targets):
                if not outcome.settled:
                    failed.setdefault(subject_of(outcome.action), outcome.detail)
                outcomes.append(outcome)
        return outcomes

    def _step(
        self, step: Sequence[AnyAction], failed: Mapping[str, str], targets: Targets
    ) -> Iterator[Outcome]:
        """Yield the outcomes of one step, first those of actions that depend on a failure."""
        ready = [each for each in step if each.forced or subject_of(each) not in failed]
        for action in step:
            if action not in ready:
                why = f"an earlier step failed: {failed[subject_of(action)]}"
                yield Outcome(action=action, kind="refused", detail=why)
        endings = [each for each in ready if isinstance(each, TerminateInstance)]
        if endings:
            yield from end_together(endings, self._ports, self._monotonic_seconds, targets)
        notes = [each for each in ready if isinstance(each, AnnotateNode)]
        if notes:
            yield from self._try(notes, partial(annotate, notes, self._ports))
        for single in ready:
            if not isinstance(single, TerminateInstance | AnnotateNode):
                yield from self._try([single], partial(apply, single, self._ports))

    def _try(
        self, actions: Sequence[AnyAction], call: Callable[[], OutcomeKind]
    ) -> Iterator[Outcome]:
        """Yield the outcomes of one call."""
        began = self._monotonic_seconds()
        kind: OutcomeKind
        detail = error = ""
        try:
            kind = call()
        except PortError as raised:
            kind, detail, error = kind_of_error(raised), str(raised), error_name(raised)
        seconds = self._monotonic_seconds() - began
        for action in actions:
            yield Outcome(action=action, kind=kind, detail=detail, error=error, seconds=seconds)


def _note_outcome(outcome: Outcome, failed: dict[str, str], targets: Targets) -> None:
    """Record what later stages have to know of an outcome."""
    action = outcome.action
    if not outcome.settled:
        failed.setdefault(subject_of(action), outcome.detail)
    if isinstance(action, SetCapacity):
        # A failed raise counts too: a node that the plan ends because of it must stay.
        targets[action.region, action.id] = action.to_capacity


class DryRunExecutor:
    """Reports what would be done."""

    @property
    def dry_run(self) -> bool:
        """Return True: it never acts."""
        return True

    def execute(
        self,
        actions: Iterable[AnyAction],
        report: Report,
        demand_waits: Callable[[], bool] = _never,  # noqa: ARG002 - nothing takes time here
    ) -> tuple[Outcome, ...]:
        """Report each action as planned; change nothing."""
        outcomes = tuple(Outcome(action=action, kind="dry-run") for action in actions)
        for outcome in outcomes:
            report(outcome)
        return outcomes

"""Puts lines of demand together: each pod once, with its end, all in order of time."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ControllerDemand,
    Demand,
    DemandLine,
    PodDemand,
    PodEnd,
)
from reconciler.model.errors import InputError

_NEVER = datetime.min.replace(tzinfo=UTC)
_EVER = datetime.max.replace(tzinfo=UTC)
_BEGIN_OF_RECORDING = "begin-of-recording"
_END_OF_RECORDING = "end-of-recording"
OF_NO_POD = frozenset({_BEGIN_OF_RECORDING, _END_OF_RECORDING})
"""The ids of lines that end no pod; a pod's id is a UID, or a namespace and a name."""
_Listed = ControllerDemand | BudgetDemand | ClaimDemand
"""What each recording lists when it begins, besides pods."""


def folded(lines: Iterable[DemandLine], begin: datetime = _NEVER) -> Demand:
    """Return lines as one demand, in which each pod has its end.

    They may be in any order, with one exception: the lines after one of `recorded_from`, until the
    next such line, are those of its recording, which lists everything that exists when it begins.
    What an earlier recording listed and this one does not had ended or was deleted by then.

    Of several lines with the id of one pod the last one counts, with the latest of their times.
    Pods of one moment come after its other lines, in the order of their ids.
    Pods from before the beginning count as created then, and run for the rest of their time; those
    that ended before are left out.

    Args:
        lines: The lines.
        begin: When they begin; later where the recording did (`recorded_from`).

    Raises:
        InputError: Pods of two namespaces have the same id, which is all that an `end` names.
    """
    kept: dict[str | int, DemandLine] = {}
    ends: dict[str, PodEnd] = {}
    listings = _Listings()
    last, first = _NEVER, _EVER
    for number, line in enumerate(lines):
        listings.add(line)
        match line:
            case PodDemand():
                kept[line.id] = _since_latest(line, kept.get(line.id))
            case PodEnd():
                ends[line.id] = line
                last = max(last, line.at)
                if line.id == _END_OF_RECORDING:
                    first = min(first, line.at)
            case _:
                kept[number] = line
                first = min(first, line.at)
    begun = listings.first if listings.first <= first else _EVER
    if begun < _EVER:  # else nothing says when it began, or something was recorded before
        begin = begun = max(begin, begun)
    for end in listings.ends():
        ends.setdefault(end.id, end)
    whole = (_with_end(line, ends, begin) for line in (*kept.values(), *listings.deletions()))
    every = sorted((line for line in whole if line is not None), key=_in_order)
    end_at = max(last, max(map(last_moment, every), default=_NEVER))
    return Demand(lines=tuple(every), end=end_at, recorded_from=begun if begun < _EVER else None)


def _in_order(line: DemandLine) -> tuple[datetime, bool, int, str]:
    """Return by what lines are sorted; of one moment all but pods stay as they were.

    Which pod comes first decides where it runs. Numbers at the end of ids count as numbers.
    """
    if isinstance(line, PodDemand):
        return line.at, True, len(line.id), line.id
    return line.at, False, 0, ""


class _Listings:
    """What each recording listed, of all whose lines were put together.

    Only pods without an end of their own, DaemonSets, budgets and claims are known: recordings have
    no others. Lines before the first recording are not of one, and nothing is known of their end.
    """

    def __init__(self) -> None:
        self._begins: set[datetime] = set()
        self._begin: datetime | None = None
        """Of the recording that the next line belongs to."""
        self._pods: dict[str, datetime] = {}
        """When each pod was known last: at the begin of the latest recording that has it, or at its
        own time if that is later. A replica that leads again may go on with an earlier recording.
        """
        self._objects: dict[tuple[str, str, str], dict[datetime, DemandLine]] = {}
        """The last line about each object, in each recording that has it."""
        self._listed: set[tuple[tuple[str, str, str], datetime]] = set()
        """Which objects were there when a recording began; others came, or came back, later."""

    @property
    def first(self) -> datetime:
        """Return when the earliest recording began; the end of time if there is none."""
        return min(self._begins, default=_EVER)

    def add(self, line: DemandLine) -> None:
        """Add a line, in the order in which it was written."""
        if isinstance(line, PodEnd) and line.id == _BEGIN_OF_RECORDING:
            self._begin = line.at
            self._begins.add(line.at)
        if self._begin is None:
            return
        if isinstance(line, PodDemand):
            if _is_endless(line):
                known = self._pods.get(line.id, self._begin)
                self._pods[line.id] = max(known, self._begin, line.at)
        elif key := _listed_object(line):
            self._objects.setdefault(key, {})[self._begin] = line
            if line.at <= self._begin:
                self._listed.add((key, self._begin))

    def ends(self) -> Iterator[PodEnd]:
        """Yield the latest possible end of each pod that later recordings do not list."""
        begins = sorted(self._begins)
        for id_, known in self._pods.items():
            if (gone := _next(begins, known)) is not None:
                yield PodEnd(at=gone, id=id_)

    def deletions(self) -> Iterator[DemandLine]:
        """Yield the deletion of each object that the next recording does not list."""
        begins = sorted(self._begins)
        for key, lines in self._objects.items():
            found: dict[datetime, DemandLine] = {}
            for begin, line in lines.items():
                gone = _next(begins, max(begin, line.at))
                if gone is None or (key, gone) in self._listed:
                    continue
                if isinstance(line, _Listed) and not line.deleted:
                    found[gone] = replace(line, at=gone, deleted=True)
            yield from found.values()


def _next(begins: list[datetime], known: datetime) -> datetime | None:
    after = bisect_right(begins, known)
    return begins[after] if after < len(begins) else None


def _listed_object(line: DemandLine) -> tuple[str, str, str] | None:
    """Return kind, namespace and name of an object that each recording lists when it begins."""
    match line:
        case ControllerDemand() if line.controller.kind == "DaemonSet":
            return "DaemonSet", line.namespace, line.controller.name
        case BudgetDemand():
            return "PodDisruptionBudget", line.namespace, line.id
        case ClaimDemand():
            return "PersistentVolumeClaim", line.namespace, line.id
        case _:
            return None


def _since_latest(pod: PodDemand, before: DemandLine | None) -> PodDemand:
    """Return a pod's line, with the time of an earlier line of the pod if that is later.

    A recorder that has been started again does not know that a scheduling gate held the pod.
    """
    if isinstance(before, PodDemand) and before.namespace != pod.namespace:
        namespaces = " and ".join(sorted((before.namespace, pod.namespace)))
        raise InputError(
            f"pod {pod.id}", f"is in two namespaces, {namespaces}", "give each pod an id of its own"
        )
    if before is None or before.at <= pod.at or (pod.until is not None and pod.until < before.at):
        return pod
    return replace(pod, at=before.at)


def _with_end(line: DemandLine, ends: Mapping[str, PodEnd], begin: datetime) -> DemandLine | None:
    """Return a line with its end, cut off at `begin`; None for a pod that ended before."""
    if not isinstance(line, PodDemand):
        return line
    end = ends.get(line.id)
    pod = line if end is None else _ended(line, end)
    if pod.at >= begin:
        return pod
    ended_at = last_moment(pod) if end is None else end.at
    if ended_at <= begin and not (end is None and _is_endless(pod)):
        return None
    ran = pod.ran_seconds
    if ran is not None:
        # A pod that waited until after the beginning ran for less than it has been there.
        ran = min(ran, (ended_at - begin).total_seconds())
    return replace(pod, at=begin, ran_seconds=ran)


def _is_endless(pod: PodDemand) -> bool:
    return pod.until is None and pod.ran_seconds is None


def recorded_from(at: datetime) -> PodEnd:
    """Return a line that says that nothing was recorded before, whenever the pods were created.

    The lines after it list everything that exists then (see `folded`).
    """
    return PodEnd(at=at, id=_BEGIN_OF_RECORDING)


def recorded_until(at: datetime) -> PodEnd:
    """Return a line that says until when was recorded, as the last change may be long before."""
    return PodEnd(at=at, id=_END_OF_RECORDING)


def with_bounds(
    lines: Iterable[DemandLine], begin: datetime | None, end: datetime
) -> Iterator[DemandLine]:
    """Yield the lines, after one that says when the recording began if that is known.

    A last line says when it ended, where none of the others lasts until then.
    """
    if begin is not None:
        yield recorded_from(begin)
    last = _NEVER
    for line in lines:
        last = max(last, last_moment(line))
        yield line
    if last < end:
        yield recorded_until(end)


def _ended(pod: PodDemand, end: PodEnd) -> PodDemand:
    if end.ran_seconds is not None:
        return replace(pod, ran_seconds=end.ran_seconds, kept_seconds=end.kept_seconds, until=None)
    return replace(pod, until=max(end.at, pod.at), ran_seconds=None, kept_seconds=None)


def last_moment(line: DemandLine) -> datetime:
    """Return the last moment that a line covers."""
    if isinstance(line, PodDemand) and line.ran_seconds is not None:
        return line.at + timedelta(seconds=line.ran_seconds)
    return getattr(line, "until", None) or line.at

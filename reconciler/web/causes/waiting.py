"""Why pods wait although the program works: what EC2, their fleets or the config do not give.

A pod counts for a cause only where one of its own reasons is of that kind, so that no fleet is
named which none of the pods could use.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.loops.reason_words import usual_remedy
from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.model.text import counted_noun
from reconciler.model.unplaceable import Reason, ReasonKind
from reconciler.web.causes.cause import BoardMoment, Cause, CauseKind, Rule, first_of

_UNAVAILABLE: Final[Mapping[ReasonKind, tuple[CauseKind, str]]] = {
    "capacity": ("no-capacity", "No capacity for {pods}"),
    "quota": ("quota-reached", "The account's quota has no room for {pods}"),
    "launch-fails": ("launch-fails", "Launches for {pods} fail"),
    "missing": ("fleet-missing", "No fleet can run {pods}"),
    "denied": ("fleet-unavailable", "EC2 refuses nodes for {pods}"),
    "never-joined": ("fleet-unavailable", "Instances for {pods} become no usable nodes"),
    "halted": ("fleet-unavailable", "No fleet can run {pods}"),
    "unproven": ("fleet-unavailable", "No fleet can run {pods}"),
    "state": ("fleet-unavailable", "No fleet can run {pods}"),
    "departing": ("fleet-unavailable", "No fleet can run {pods}"),
}
"""The cause and its headline, by what keeps the fleets of pods; where a region does not answer, a
cause of its own says so."""
_LIMITS: Final[Mapping[tuple[str, ReasonKind], str]] = {
    ("max-cost", ""): "max_hourly_usd",
    ("max-capacity", ""): "max_capacity",
    ("max-capacity", "maximum-size"): "the maximum size of the Auto Scaling group",
    ("max-capacity", "both-maxima"): "max_capacity and the maximum size of the Auto Scaling group",
    ("raise-limit", ""): "raise_limits",
    ("raise-limit", "below-one-node"): "raise_limits",
}
"""What is to be raised, by code and kind."""
_EASED_BY_LEAVING: Final = frozenset({"max-cost", "max-capacity"})
"""Limits on what runs: there is room again when other nodes are gone."""


def _unavailable(seen: BoardMoment) -> Iterator[Cause]:
    """Yield fleets that cannot be asked for nodes while pods wait for them, by what is the matter.

    Fleets of which EC2 lacks capacity come first, as most often it is that.
    """
    plan = seen.view.plan
    if plan is None:
        return
    waiting = _waiting(plan, lambda reason: reason.kind)
    for kind, (cause, headline) in _UNAVAILABLE.items():
        if kind not in waiting:
            continue
        reasons, remedy = waiting[kind].reasons, usual_remedy("fleet-unavailable", kind)
        if kind in {"capacity", "quota"} and "spot-fallback" in waiting:
            remedy += ", or set spot_fallback: on-demand"
        yield Cause(
            kind=cause,
            level="limited",
            headline=headline.format(pods=counted_noun(waiting[kind].pods, "pod")),
            detail=_missing(reasons) if kind == "missing" else _named(reasons),
            remedy=remedy,
        )


def _missing(found: list[Reason]) -> str:
    names = sorted(f"{reason.fleet} in {reason.region}" for reason in found)
    return f"EC2 does not have {first_of(names)}"


def _named(found: list[Reason]) -> str:
    return first_of((f"{reason.fleet}: {reason.detail}" for reason in found), "; ")


def _budget(seen: BoardMoment) -> Iterator[Cause]:
    """Yield pods that wait because a limit is reached."""
    plan = seen.view.plan
    if plan is None:
        return
    limits = _waiting(plan, lambda r: "limit" if (r.code, r.kind) in _LIMITS else "")
    if not limits:
        return
    pods, reasons = limits["limit"].pods, limits["limit"].reasons
    keys = sorted({_LIMITS[reason.code, reason.kind] for reason in reasons})
    first = reasons[0]
    where = f"{first.fleet}: " if first.fleet else ""
    only_sizes = all(reason.code == "max-capacity" for reason in reasons)
    yield Cause(
        kind="budget-too-tight",
        level="limited",
        headline=f"{'Limit reached' if only_sizes else 'Budget too tight'} for "
        f"{counted_noun(pods, 'pod')}",
        detail=f"{where}{first.detail}",
        remedy=f"raise {' or '.join(keys)}{_or_wait_for(reasons)}",
    )


def _or_wait_for(found: list[Reason]) -> str:
    """Return `, or wait …` if waiting helps too; else that no plan buys a node before."""
    if any(reason.code in _EASED_BY_LEAVING for reason in found):
        return ", or wait until other nodes are gone"
    if all(reason.kind == "below-one-node" for reason in found):
        return ": no plan buys a node before"
    return ", or wait: later plans go on"


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """The unplaceable pods that have a reason of one sort."""

    pods: int = 0
    by_fleet: dict[tuple[str, Region], Reason] = field(default_factory=dict)

    @property
    def reasons(self) -> list[Reason]:
        """Return one reason per fleet."""
        return list(self.by_fleet.values())


def _waiting(plan: Plan, sort_of: Callable[[Reason], str]) -> dict[str, _Waiting]:
    """Return the pods that wait by the sorts of their reasons; reasons of the sort "" are none."""
    found: dict[str, _Waiting] = {}
    for reasons, pods in plan.refusals():
        sorts = [(sort_of(reason), reason) for reason in reasons]
        for sort in {sort for sort, _ in sorts if sort}:
            found.setdefault(sort, _Waiting()).pods += pods
        for sort, reason in sorts:
            if sort:
                found[sort].by_fleet.setdefault((reason.fleet, reason.region), reason)
    return found


WAITING_RULES: Final[tuple[Rule, ...]] = (_unavailable, _budget)

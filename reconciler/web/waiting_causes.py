"""Why pods wait although the program works: what EC2, their fleets or the config do not give.

A pod counts for a cause only where one of its own reasons is of that kind, so that no fleet is
named which none of the pods could use.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.model.text import counted_noun
from reconciler.model.unplaceable import Reason, ReasonKind
from reconciler.web.cause import Cause, CauseKind, Rule, Seen, first_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is said of the pods that wait for fleets of one kind."""

    kind: CauseKind
    headline: str
    """`{pods}` stands for the number of pods."""
    remedy: str


_NO_FLEET: Final = "No fleet can run {pods}"
_UNAVAILABLE: Final[Mapping[ReasonKind, _Told]] = {
    "capacity": _Told(
        kind="no-capacity",
        headline="No capacity for {pods}",
        remedy="add instance types, sizes or zones",
    ),
    "missing": _Told(
        kind="fleet-missing", headline=_NO_FLEET, remedy="apply the Terraform root of this config"
    ),
    "denied": _Told(
        kind="fleet-unavailable",
        headline="EC2 refuses nodes for {pods}",
        remedy="compare the role's policy with the one of terraform/reconciler, and see who else"
        " changes these fleets",
    ),
    "never-joined": _Told(
        kind="fleet-unavailable",
        headline="Instances for {pods} do not join",
        remedy="look at the console output of such an instance: wrong image, user data or rights",
    ),
    "halted": _Told(
        kind="fleet-unavailable",
        headline=_NO_FLEET,
        remedy="resume the process Launch, or remove the weights: such a fleet is asked for"
        " nothing until it is changed",
    ),
    "unproven": _Told(
        kind="fleet-unavailable",
        headline=_NO_FLEET,
        remedy="check kube-context and config: see the cluster's verdict",
    ),
    "state": _Told(
        kind="fleet-unavailable",
        headline=_NO_FLEET,
        remedy="look at the fleet in EC2: it serves again when it is active",
    ),
    "departing": _Told(
        kind="fleet-unavailable",
        headline=_NO_FLEET,
        remedy="add another fleet to the sector, or wait for the new fleet where one replaces it",
    ),
}
"""Where a region does not answer, a cause of its own says so."""
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


def _unavailable(seen: Seen) -> Iterator[Cause]:
    """Yield fleets that cannot be asked for nodes while pods wait for them, by what is the matter.

    Fleets of which EC2 lacks capacity come first, as most often it is that.
    """
    plan = seen.view.plan
    if plan is None:
        return
    waiting = _waiting(plan, lambda reason: reason.kind)
    for kind, told in _UNAVAILABLE.items():
        if kind not in waiting:
            continue
        found, remedy = waiting[kind].reasons, told.remedy
        if kind == "capacity" and "spot-fallback" in waiting:
            remedy += ", or set spot_fallback: on-demand"
        yield Cause(
            kind=told.kind,
            level="limited",
            headline=told.headline.format(pods=counted_noun(waiting[kind].pods, "pod")),
            detail=_missing(found) if kind == "missing" else _named(found),
            remedy=remedy,
        )


def _missing(found: list[Reason]) -> str:
    names = sorted(f"{reason.fleet} in {reason.region}" for reason in found)
    return f"EC2 does not have {first_of(names)}"


def _named(found: list[Reason]) -> str:
    return first_of((f"{each.fleet}: {each.detail}" for each in found), "; ")


def _budget(seen: Seen) -> Iterator[Cause]:
    """Yield pods that wait because a limit is reached."""
    plan = seen.view.plan
    if plan is None:
        return
    limits = _waiting(plan, lambda r: "limit" if (r.code, r.kind) in _LIMITS else "")
    if not limits:
        return
    pods, found = limits["limit"].pods, limits["limit"].reasons
    keys = sorted({_LIMITS[reason.code, reason.kind] for reason in found})
    first = found[0]
    where = f"{first.fleet}: " if first.fleet else ""
    only_sizes = all(reason.code == "max-capacity" for reason in found)
    yield Cause(
        kind="budget-too-tight",
        level="limited",
        headline=f"{'Limit reached' if only_sizes else 'Budget too tight'} for "
        f"{counted_noun(pods, 'pod')}",
        detail=f"{where}{first.detail}",
        remedy=f"raise {' or '.join(keys)}{_or_wait(found)}",
    )


def _or_wait(found: list[Reason]) -> str:
    """Return for what one can wait instead of raising a limit, if for anything."""
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

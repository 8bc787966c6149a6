"""What prevents a fleet from having one more node, other than the pod: limits, money, EC2."""

from collections.abc import Mapping
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.text import rfc3339
from reconciler.model.unplaceable import UnavailableKind
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.fleets.health import MISSING
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.maximum import is_replaced
from reconciler.planner.money import NANO
from reconciler.planner.policies.scale_up.overflow import blocking_spot_fleets
from reconciler.planner.raise_limits import raise_limits
from reconciler.planner.reservations import WaitingClass

Lifted = tuple[str, int]
"""A change in words, and how large it is."""
TO_DO: Final[Mapping[UnavailableKind, str]] = {
    "never-joined": "find out why instances of {name} become no usable nodes",
    "quota": "raise the account's quota for {name}",
    "launch-fails": "fix what launches of {name} fail for",
    "denied": "make EC2 accept raises of {name} again",
    "halted": "set {name} up to be scaled",
    "unproven": "prove that instances of {name} are nodes of this cluster",
}
"""What ends a state of a fleet that does not end by waiting."""


def limits_lifted(builder: PlanBuilder, pod: Pod, status: FleetStatus) -> list[Lifted] | None:
    """Return the changes after which the fleet may have one more node for the pod.

    None if no setting would help: the fleet is in a region that is not its first choice, or is to
    be removed.
    """
    if status.tier or (status.settings.departing and not is_replaced(status)):
        return None
    return [
        *_quarantine(builder, pod, status),
        *_availability(builder, pod, status),
        *_maximum(builder, status),
        *_money(builder, status),
        *_raises(builder, status),
    ]


def _quarantine(builder: PlanBuilder, pod: Pod, status: FleetStatus) -> list[Lifted]:
    """Return what helps after purchases that pods did not use: another spec, or other nodes."""
    number = builder.view.table.of(pod, bound=False).number
    if number in builder.purchases.awaiting_bind:
        return [(f"wait: {builder.purchases.awaiting_bind[number]}", 2)]
    if number not in builder.purchases.quarantined:
        return []
    nodes = f"{status.key.name}'s nodes"
    return [(f"fix the pod's template or {nodes}: they differ from what was planned", 3)]


def _availability(builder: PlanBuilder, pod: Pod, status: FleetStatus) -> list[Lifted]:
    name = status.key.name
    if status.state == MISSING:
        return [(f"create {name}: the config has it, EC2 does not", 2)]
    if status.unavailable:
        what = TO_DO.get(status.unavailable_kind, "wait for {name}").format(name=name)
        return [(f"{what}: {status.unavailable}", 2)]
    waiting = WaitingClass(
        pod_class=builder.view.table.of(pod, bound=False),
        sectors=(status.settings.sector,),
        pods=[pod],
    )
    blockers = () if status.settings.spot else blocking_spot_fleets(builder, waiting, status)
    return [(f"set `spot_fallback: on-demand` on {blocker.key.name}", 1) for blocker in blockers]


def _maximum(builder: PlanBuilder, status: FleetStatus) -> list[Lifted]:
    """Return which limits to raise so that the fleet may have one more node."""
    wanted = builder.size_of(status.key) + 1
    name, found = status.key.name, []
    if status.settings.departing:
        return [(f"wait until {name} is drained and the plan that replaces it is applied", 2)]
    if status.settings.max_capacity is not None and status.settings.max_capacity < wanted:
        found.append((f"raise max_capacity of {name} to {wanted}", 1))
    group_max = status.live.max_size if status.live else None
    if group_max is not None and group_max < wanted:
        found.append((f"raise the maximum size of the group of {name} to {wanted}", 1))
    return found


def _money(builder: PlanBuilder, status: FleetStatus) -> list[Lifted]:
    price = builder.view.offers[status.key].nano_usd_per_hour
    found = []
    for limit in cost_limits(builder, status.settings.sector):
        if limit.left < price:
            of = f" of sector {limit.of_sector}" if limit.of_sector else ""
            found.append((f"raise max_hourly_usd{of} to {_rounded_up(limit.spent + price)}", 1))
    return found


def _raises(builder: PlanBuilder, status: FleetStatus) -> list[Lifted]:
    """Return every limit on how far targets may rise that leaves no node for the fleet."""
    price = builder.view.offers[status.key].nano_usd_per_hour
    found = []
    for limit in raise_limits(builder):
        more = limit.more(price)
        if limit.left < more:
            to = _rounded_up(limit.used + more) if limit.money else str(limit.used + more)
            change = f"raise raise_limits.{limit.key} to {to}"
            if not limit.below_one_node(price):
                eases = limit.eases_at
                when = "for the next plan" if eases is None else f"until {rfc3339(eases)}"
                change = f"wait {when}, or {change}"
            found.append((change, 1))
    return found


def _rounded_up(nano: int) -> str:
    """Return the price rounded up to ten-thousandths of a dollar."""
    return f"{-(-nano * 10_000 // NANO) / 10_000:.4f}"

"""Why a fleet has the size that the plan gives it."""

from collections import Counter

from reconciler.model.actions import SetCapacity, TerminateInstance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey
from reconciler.model.plan import FleetPlan, Plan
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.explain.answers import FleetExplanation, FleetVerdict
from reconciler.planner.explain.nodes import verdict_of
from reconciler.planner.fleets.maximum import maximum_reached
from reconciler.planner.money import usd


def explain_fleet(builder: PlanBuilder, made: Plan, key: FleetKey) -> FleetExplanation:
    """Return the explanation of a fleet from a finished plan."""
    status = builder.view.statuses[key]
    planned = next(f for f in made.fleets if (f.fleet, f.region) == (key.name, key.region))
    verdicts = [verdict_of(builder, made, node) for node in status.nodes]
    nodes = Counter(code for _, code, _ in verdicts)
    refused = Counter(
        reason.code
        for pod in made.unplaceable
        for reason in pod.reasons
        if (reason.fleet, reason.region) == (key.name, key.region)
    )
    verdict, because = _verdict(builder, made, key, planned, refused=bool(refused))
    price = builder.view.offers[key].nano_usd_per_hour
    return FleetExplanation(
        plan=planned,
        verdict=verdict,
        because=because,
        hourly_usd=usd(planned.target * price),
        pods=sum((p.fleet, p.region) == (key.name, key.region) for p in made.placements),
        nodes=FrozenMap(sorted(nodes.items())),
        refused=FrozenMap(sorted(refused.items())),
    )


def _verdict(
    builder: PlanBuilder,
    made: Plan,
    key: FleetKey,
    planned: FleetPlan,
    *,
    refused: bool,
) -> tuple[FleetVerdict, str]:
    """Return what the plan does with the fleet, and why, in words.

    Args:
        builder: The plan as it was decided.
        made: The same plan, finished.
        key: The fleet.
        planned: Its numbers.
        refused: Whether a pending pod was refused by it.
    """
    here = (planned.fleet, planned.region)
    for action in made.actions:
        if isinstance(action, SetCapacity) and (action.fleet, action.region) == here:
            return _direction(planned), action.because
    ending = [
        action
        for action in made.actions
        if isinstance(action, TerminateInstance) and (action.fleet, action.region) == here
    ]
    if ending:
        reasons = "; ".join(sorted({action.because for action in ending}))
        count = len(ending)
        ended = f"{count} of its nodes {'is' if count == 1 else 'are'} ended"
        return _direction(planned), f"{ended}: {reasons}"
    if planned.removal:
        return "stays", f"it is being removed: {planned.removal}"
    if planned.unavailable:
        return "unavailable", planned.unavailable
    status = builder.view.statuses[key]
    if planned.max is not None and planned.target >= planned.max and planned.max:
        return "stays", f"it {maximum_reached(status, planned.target)[1]}"
    because = "no pending pod needs more of it"
    if refused:
        because = "no pending pod can use more of its nodes"
    if status.min >= planned.target:
        because += f", and it is at its min_capacity of {planned.min}"
    return "stays", because


def _direction(planned: FleetPlan) -> FleetVerdict:
    if planned.target > planned.current:
        return "grows"
    return "shrinks" if planned.target < planned.current else "stays"

"""What a plan may find and an action may come to, for those that report it."""

from reconciler.model.actions import SetCapacity
from reconciler.model.ids import FleetId, PodKey, Region
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import Cost, FleetPlan
from reconciler.model.unplaceable import Reason, Unplaceable
from tests.builders import HOME

FREE = Cost(hourly_usd_before=0, hourly_usd_after=0, hourly_usd_lower_bound=0, gap=0)


def raised(
    kind: OutcomeKind,
    detail: str = "",
    to: int = 5,
    *,
    region: Region = HOME,
    places_taken: str = "",
) -> Outcome:
    """The end of a scale-up from 2."""
    action = SetCapacity(
        fleet="primary-small",
        provider="ec2-fleet",
        id=FleetId("fleet-1"),
        region=region,
        from_capacity=2,
        to_capacity=to,
        policy="scale-up",
        because="11 pending pods need 3 more nodes",
        places_taken=places_taken,
    )
    return Outcome(action=action, kind=kind, detail=detail)


def unplaced(
    name: str, code: str = "insufficient-memory", detail: str = "requests 300Gi"
) -> Unplaceable:
    """A pod that nothing can take."""
    reason = Reason(fleet="primary-small", region=HOME, code=code, detail=detail)
    key = PodKey(namespace="ns", name=name, uid=f"uid-{name}")
    return Unplaceable(pod=key, reasons=(reason,))


def failing(reason: str) -> FleetPlan:
    """A fleet that is asked for nothing."""
    return FleetPlan(
        fleet="primary-small",
        region=HOME,
        current=2,
        joined=0,
        launching=2,
        target=2,
        min=0,
        max=None,
        state="active",
        unavailable=reason,
    )

"""Raises that EC2 refuses again and again, for another reason than capacity."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.loops.lease.refused_raises import RefusedRaises
from reconciler.model.actions import SetCapacity
from reconciler.model.errors import Conflict, Forbidden, PortError, Refused, Unavailable
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Cost, Plan
from reconciler.model.saved_state import SavedFleetState
from tests.builders import AWAY, HOME, NOW, make_pod
from tests.unit.loops.reporters.reported import raised
from tests.unit.loops.scene import Scene

FREE = Cost(hourly_usd_before=0, hourly_usd_after=0, hourly_usd_lower_bound=0, gap=0)
DETAIL = "fleet-1: UnauthorizedOperation: you are not authorized"
DENIED = replace(raised("failed", DETAIL), error="Forbidden")


def states(refusals: RefusedRaises, seconds: float, *outcomes: Outcome) -> list[SavedFleetState]:
    """What is remembered of fleets after a plan of that time."""
    at = NOW + timedelta(seconds=seconds)
    made = Plan(at=at, cluster="c", home_region=HOME, cost=FREE)
    return list(refusals.noted_in(made, outcomes).fleet_states)


@pytest.mark.parametrize("error", ["Conflict", "Forbidden", "Refused"])
def test_fleet_that_is_denied_for_minutes_has_a_cool_off(error: str) -> None:
    """Its pods waited without a limit, although another fleet could take them."""
    refusals, denied = RefusedRaises(), replace(DENIED, error=error)
    assert [states(refusals, seconds, denied) for seconds in (0, 60, 119)] == [[], [], []]
    (saved,) = states(refusals, 120, denied)
    assert saved.unavailable_until == NOW + timedelta(seconds=420)
    assert (saved.reason, saved.failures, saved.failure) == (DETAIL, 0, "denied")
    (again,) = states(refusals, 430, denied)
    assert again.unavailable_until == NOW + timedelta(seconds=730)


def test_denials_that_end_or_lie_far_apart_close_no_fleet() -> None:
    """Another writer changed the target now and then, and each time a raise was a moment late."""
    refusals = RefusedRaises()
    for outcome in (DENIED, raised("applied"), DENIED):
        assert states(refusals, 0, outcome) == []
    assert states(refusals, 119, DENIED) == []
    assert states(refusals, 3600, DENIED) == []


def test_call_that_was_throttled_closes_no_fleet() -> None:
    """AWS asks to be asked again."""
    refusals = RefusedRaises()
    for seconds in (0, 60, 180):
        assert states(refusals, seconds, replace(DENIED, error="Throttled")) == []


@pytest.mark.parametrize("error", ["Unavailable", "OutcomeUnknown"])
def test_the_one_fleet_whose_raises_are_not_answered_has_a_cool_off(error: str) -> None:
    """ModifyFleet answered 500 for one fleet: its pods waited beside a fleet that works."""
    refusals, broken = RefusedRaises(), replace(DENIED, error=error)
    assert [states(refusals, seconds, broken) for seconds in (0, 60)] == [[], []]
    (saved,) = states(refusals, 120, broken)
    assert (saved.reason, saved.failure) == (DETAIL, "denied")
    (again,) = states(refusals, 430, broken)
    assert again.unavailable_until == NOW + timedelta(seconds=730)


@pytest.mark.parametrize("error", ["Unavailable", "OutcomeUnknown"])
def test_raises_that_are_answered_nowhere_close_no_further_fleet(error: str) -> None:
    """EC2 is down: what is closed then is asked again only minutes after EC2 is back."""
    action = DENIED.action
    assert isinstance(action, SetCapacity)
    first = replace(DENIED, error=error)
    other, away = (
        replace(first, action=replace(action, fleet=fleet, region=region))
        for fleet, region in (("other", HOME), ("away", AWAY))
    )
    refusals = RefusedRaises()
    for seconds in (0, 60, 180):
        assert states(refusals, seconds, first, other) == []
    refusals = RefusedRaises()
    for seconds in (0, 60):
        assert states(refusals, seconds, first, away) == []
    assert len(states(refusals, 120, first, away)) == 2, "of each region one may be closed"
    refusals = RefusedRaises()
    assert states(refusals, 0, first) == []
    assert len(states(refusals, 120, first)) == 1
    moved = [states(refusals, seconds, other) for seconds in (150, 300)]
    assert moved == [[], []], "demand moved on, and the second one is not answered either"
    assert len(states(refusals, 700, other)) == 1, "the first one is long forgotten"


def test_target_that_cannot_be_lowered_closes_no_fleet() -> None:
    """It takes more nodes all the same."""
    refusals, lowered = RefusedRaises(), replace(raised("failed", to=1), error="Forbidden")
    for seconds in (0, 60, 180):
        assert states(refusals, seconds, lowered) == []


@pytest.mark.parametrize("error", [Conflict, Forbidden, Refused, Unavailable])
def test_demand_moves_on_from_a_fleet_that_is_denied(error: type[PortError]) -> None:
    """The cheapest fleet was asked for in every plan, and the pods waited."""
    scene = Scene()
    spare = scene.add_expensive()
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    denied = error("fleet", "UnauthorizedOperation: you are not authorized")
    scene.world.fail_next("set_target_capacity", denied, times=30)
    scene.run(3)
    assert scene.world.target(spare) == 0
    scene.run(14)
    asked = [c for c in scene.world.calls if c.operation == "set_target_capacity"]
    assert any(spare in call.subject for call in asked), {call.subject for call in asked}

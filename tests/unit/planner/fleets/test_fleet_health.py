"""What is remembered of fleets that fail, and for how long they are left alone."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.fleet import Fleet, FleetEvent
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    AWAY,
    HOME,
    NOW,
    ago,
    amounts,
    capacity_error,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings()
SETTINGS = make_settings(FLEET)
INIT = timedelta(seconds=SETTINGS.instance_init_seconds)


def planned(
    fleet: Fleet,
    saved: SavedFleetState | None = None,
    *,
    at: datetime = NOW,
    instances: tuple[Any, ...] = (),
    settings: PlannerSettings = SETTINGS,
    **changed: Any,
) -> Plan:
    """The plan for one pending pod."""
    cloud = make_cloud(fleet, instances=instances, **changed)
    fleet_states = (saved,) if saved else ()
    return plan(make_snapshot(make_pod(), cloud=cloud, fleet_states=fleet_states, at=at), settings)


def only(made: Plan) -> SavedFleetState:
    """The saved state of the one fleet."""
    (saved,) = made.fleet_states
    return saved


def closed(made: Plan) -> str:
    """Why the fleet is unavailable; empty when it is not."""
    reasons = [r for u in made.unplaceable for r in u.reasons if r.code == "fleet-unavailable"]
    return reasons[0].detail if reasons else ""


def test_capacity_error_is_remembered_until_its_cool_off_ends() -> None:
    """EC2's history is read only while something looks wrong, and not for ever."""
    saved = only(planned(make_fleet(FLEET, launch_errors=(capacity_error(60),))))
    assert (saved.failures, saved.last_error_at) == (1, ago(60))
    assert saved.unavailable_until == ago(60) + timedelta(minutes=5)
    assert "InsufficientInstanceCapacity" in closed(planned(make_fleet(FLEET), saved))


@pytest.mark.parametrize(
    ("failures", "minutes"), [(1, 5), (2, 10), (3, 20), (4, 30), (5, 30), (2_000_000, 30)]
)
def test_cool_off_doubles_across_restarts_up_to_half_an_hour(failures: int, minutes: int) -> None:
    """A pool that is empty for a day would be stormed every five minutes."""
    before = SavedFleetState(
        fleet=FLEET.name, region=HOME, failures=failures - 1, last_error_at=ago(900)
    )
    saved = only(planned(make_fleet(FLEET, launch_errors=(capacity_error(10),)), before))
    assert saved.failures == failures
    assert saved.unavailable_until == ago(10) + timedelta(minutes=minutes)


def test_history_of_an_hour_counts_where_nothing_was_remembered() -> None:
    """A fleet that failed for longer would be asked again sooner after a restart."""
    errors = tuple(capacity_error(60 * minutes) for minutes in (40, 30, 20, 10))
    saved = only(planned(make_fleet(FLEET, launch_errors=errors)))
    assert saved.failures == 4
    assert saved.unavailable_until == ago(600) + timedelta(minutes=30)


def test_error_counts_once_however_often_it_is_seen() -> None:
    """Every cycle would double the cool-off while the history shows the same line."""
    fleet = make_fleet(FLEET, launch_errors=(capacity_error(60),))
    first = only(planned(fleet))
    assert only(planned(fleet, first, at=NOW + timedelta(seconds=20))) == first


def test_errors_of_one_attempt_count_once_even_when_seen_apart() -> None:
    """Each pool of a fleet gives an error of its own within seconds."""
    errors = (capacity_error(60), capacity_error(50), capacity_error(45))
    first = only(planned(make_fleet(FLEET, launch_errors=errors[:1])))
    saved = only(planned(make_fleet(FLEET, launch_errors=errors), first))
    assert saved.failures == 1
    assert saved.unavailable_until == ago(45) + timedelta(minutes=5)


def test_fleet_that_launches_all_it_was_asked_for_begins_anew() -> None:
    """An empty pool of last week would cost half an hour on-demand today."""
    node = make_node("n", FLEET, created_at=ago(50))
    fleet = make_fleet(FLEET, 1)
    before = SavedFleetState(fleet=FLEET.name, region=HOME, failures=4, last_error_at=ago(900))
    made = planned(fleet, before, instances=(make_instance(node, fleet),))
    assert only(made).failures == 0


def test_failures_of_long_ago_are_forgotten() -> None:
    """The Lease would fill with fleets that failed once."""
    before = SavedFleetState(
        fleet=FLEET.name,
        region=HOME,
        failures=4,
        last_error_at=ago(3 * 3600),
        unavailable_until=ago(2 * 3600),
        reason="InsufficientInstanceCapacity",
    )
    assert only(planned(make_fleet(FLEET), before)) == SavedFleetState(
        fleet=FLEET.name, region=HOME
    )


def test_fleet_below_its_target_for_too_long_is_unavailable_without_any_error() -> None:
    """EC2 may say nothing at all: pods would wait for instances that never come."""
    fleet = make_fleet(FLEET, 2)
    first = only(planned(fleet))
    assert first.below_target_since == NOW
    just = planned(fleet, first, at=NOW + INIT - timedelta(seconds=1))
    assert closed(just) == ""
    late = planned(fleet, first, at=NOW + INIT)
    assert "EC2 holds 0 of 2" in closed(late)


def test_history_tells_when_the_target_was_set() -> None:
    """A program that was down while EC2 launched nothing would wait as long again."""
    late = make_fleet(FLEET, 2, changed_at=ago(INIT.total_seconds() + 1))
    assert closed(planned(late))
    assert not closed(planned(make_fleet(FLEET, 2, changed_at=ago(60))))


def test_each_launch_is_progress() -> None:
    """A large fleet that grows slowly and well would be given up half-way."""
    node = make_node("n", FLEET, created_at=ago(100))
    fleet = make_fleet(FLEET, 5)
    before = SavedFleetState(fleet=FLEET.name, region=HOME, below_target_since=ago(5000))
    made = planned(fleet, before, instances=(make_instance(node, fleet),))
    assert not closed(made)
    assert only(made).below_target_since == ago(5000)


def test_fleet_that_reaches_its_target_is_available_at_once() -> None:
    """New demand would stay on the more expensive fleet although the cheaper one works again."""
    before = SavedFleetState(fleet=FLEET.name, region=HOME, below_target_since=ago(5000))
    made = planned(make_fleet(FLEET, 2, fulfilled_capacity=2.0), before)
    assert not closed(made)
    assert only(made).below_target_since is None


def test_clock_that_jumps_back_does_not_close_or_open_a_fleet() -> None:
    """Times of the future count as now."""
    before = SavedFleetState(
        fleet=FLEET.name, region=HOME, below_target_since=NOW + timedelta(hours=2)
    )
    made = planned(make_fleet(FLEET, 2), before)
    assert only(made).below_target_since == NOW
    assert not closed(made)


def test_cool_off_that_ends_in_the_far_future_is_cut() -> None:
    """A clock was a year ahead when EC2 failed: the fleet would buy nothing for a year."""
    future = NOW + timedelta(days=365)
    before = SavedFleetState(
        fleet=FLEET.name, region=HOME, failures=1, last_error_at=future, unavailable_until=future
    )
    saved = only(planned(make_fleet(FLEET), before))
    assert saved.unavailable_until == NOW + timedelta(minutes=30)
    assert not closed(planned(make_fleet(FLEET), saved, at=NOW + timedelta(minutes=30)))


def test_errors_count_although_the_last_one_was_noted_in_the_future() -> None:
    """Until the clock has caught up, no capacity error would move demand on."""
    before = SavedFleetState(
        fleet=FLEET.name, region=HOME, failures=1, last_error_at=NOW + timedelta(days=365)
    )
    after = NOW + timedelta(seconds=20)
    first = only(planned(make_fleet(FLEET), before))
    made = planned(make_fleet(FLEET, launch_errors=(capacity_error(-10),)), first, at=after)
    assert "InsufficientInstanceCapacity" in closed(made)


def test_silence_noted_in_the_future_counts_from_now() -> None:
    """Demand would not move on to the next region before the clock has caught up."""
    away = make_fleet(TWO_REGIONS, region=AWAY)
    settings = make_settings(TWO_REGIONS, regions=(HOME, AWAY))
    quiet: dict[str, Any] = {"regions": frozenset({AWAY}), "silent": frozenset({HOME})}
    noted = NOW + timedelta(days=365)
    before = SavedFleetState(fleet=TWO_REGIONS.name, region=HOME, silent_since=noted)
    made = planned(away, before, settings=settings, **quiet)
    assert next(m for m in made.fleet_states if m.region == HOME).silent_since == NOW


TWO_REGIONS = make_fleet_settings(regions=(HOME, AWAY))


def raised(made: Plan) -> list[tuple[str, int]]:
    """Region and new target."""
    return [(a.region, a.to_capacity) for a in made.actions if isinstance(a, SetCapacity)]


def test_region_that_is_silent_for_a_moment_does_not_fill_another() -> None:
    """One lost answer would launch nodes across the continent."""
    away = make_fleet(TWO_REGIONS, region=AWAY)
    settings = make_settings(TWO_REGIONS, regions=(HOME, AWAY))
    quiet: dict[str, Any] = {"regions": frozenset({AWAY}), "silent": frozenset({HOME})}
    made = planned(away, settings=settings, **quiet)
    assert raised(made) == []
    assert "does not answer" in closed(made)
    saved = next(m for m in made.fleet_states if m.region == HOME)
    assert saved.silent_since == NOW
    later = planned(away, saved, at=NOW + INIT, settings=settings, **quiet)
    assert raised(later) == [(AWAY, 1)]


def test_silent_region_never_looks_empty() -> None:
    """Its nodes would be given back, replaced or counted as gone."""
    settings = make_settings(TWO_REGIONS, regions=(HOME, AWAY))
    nodes = [
        make_node(f"n{i}", TWO_REGIONS, region=AWAY, zone="us-east-1a", ready=i > 0)
        for i in range(3)
    ]
    home = make_fleet(TWO_REGIONS)
    cloud = make_cloud(home, silent=frozenset({AWAY}))
    made = plan(make_snapshot(*nodes, cloud=cloud), settings)
    assert made.actions == ()
    assert [(f.region, f.state, f.joined) for f in made.fleets] == [
        (HOME, "active", 0),
        (AWAY, "unknown", 3),
    ]


def test_silent_region_keeps_what_is_remembered_of_its_fleets() -> None:
    """An outage would forget every cool-off."""
    saved = SavedFleetState(fleet=FLEET.name, region=HOME, failures=3, below_target_since=ago(60))
    cloud = make_cloud(regions=frozenset(), silent=frozenset({HOME}))
    made = plan(make_snapshot(cloud=cloud, fleet_states=(saved,)), SETTINGS)
    assert only(made) == replace(saved, silent_since=NOW)


def test_instance_of_a_second_fleet_of_the_name_is_none_of_the_first() -> None:
    """Its node would be ended in the name of a fleet that does not count it."""
    node = make_node("n", FLEET)
    first = make_fleet(FLEET, 0, created_at=ago(9000))
    second = make_fleet(FLEET, 1, id="fleet-second", created_at=ago(100))
    cloud = make_cloud(first, second, instances=(make_instance(node, second),))
    made = plan(make_snapshot(node, cloud=cloud), SETTINGS)
    assert made.actions == ()
    assert [(f.joined, f.current) for f in made.fleets] == [(0, 0)]


def test_long_error_codes_are_cut() -> None:
    """A message in place of a code would fill the annotation."""
    error = FleetEvent(at=ago(60), code="x" * 5000)
    assert len(only(planned(make_fleet(FLEET, launch_errors=(error,)))).reason) == 160


def test_instance_without_a_fleet_fulfils_no_target() -> None:
    """A machine started by hand would hide that the fleet launches nothing."""
    fleet = make_fleet(FLEET, 1)
    stray = replace(
        make_instance(make_node("n", FLEET), fleet), id=InstanceId("i-x"), fleet_id=None
    )
    assert only(planned(fleet, instances=(stray,))).below_target_since == NOW


def test_memory_of_a_fleet_that_the_config_dropped_goes_after_an_hour() -> None:
    """The Lease would keep every fleet that there ever was."""
    young = SavedFleetState(fleet="gone", region=HOME, failures=1, last_error_at=ago(1800))
    old = SavedFleetState(
        fleet="gone", region=AWAY, stuck_in_a_row=2, last_stuck_launched_at=ago(9000)
    )
    cloud = make_cloud(make_fleet(FLEET))
    made = plan(make_snapshot(cloud=cloud, fleet_states=(young, old)), SETTINGS)
    assert made.fleet_states == (young,)


def test_fleet_that_was_whole_a_moment_ago_is_not_short_for_long() -> None:
    """One interrupted spot instance would close it: its demand is bought elsewhere at once."""
    whole = SavedFleetState(
        fleet=FLEET.name, region=HOME, learned=amounts(cpu=4), learned_version="x"
    )
    live = make_fleet(FLEET, 3, changed_at=ago(1560), fulfilled_capacity=2.0)
    made = planned(live, whole)
    assert not closed(made)
    assert only(made).below_target_since == NOW

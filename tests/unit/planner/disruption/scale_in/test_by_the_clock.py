"""Empty nodes by local time and weekday, in whole plans (docs/scale-in.md)."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from reconciler.model.actions import UNNEEDED_SINCE, begins_drain
from reconciler.model.cluster import Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import GracePeriod
from reconciler.planner.planner import plan
from tests.builders import (
    make_cloud,
    make_fleet,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    on,
    planned,
    unneeded,
)

NIGHT = GracePeriod(starts=time(22), ends=time(6), weekdays=frozenset({2}), seconds=7200)
OFFICE = GracePeriod(starts=time(7), ends=time(19), weekdays=frozenset(range(1, 6)), seconds=3600)
FLEET = make_scene_fleet(grace_periods=(NIGHT, OFFICE), idle_threshold_seconds=900)


def leaves(at: str, idle_minutes: float, timezone: str = "UTC", *, explicit: bool = False) -> bool:
    """Whether a node that has been empty for so long is tainted at that moment."""
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    scale_in = replace(FLEET.scale_in, idle_threshold_explicit=explicit)
    fleet = replace(FLEET, scale_in=scale_in)
    since = moment - timedelta(minutes=idle_minutes)
    node = make_node(
        "n",
        fleet,
        created_at=since,
        ready_changed_at=since,
        annotations=FrozenMap({UNNEEDED_SINCE: rfc3339(since)}),
    )
    live = make_fleet(fleet, 1)
    cloud = make_cloud(live, instances=[make_instance(node, live)])
    made = plan(
        make_snapshot(node, cloud=cloud, at=moment), make_settings(fleet, timezone=timezone)
    )
    return any(begins_drain(action) for action in made.actions)


@pytest.mark.parametrize(
    ("at", "idle_minutes", "expected"),
    [
        # Tuesday 27 January 2026: the night holds from midnight to six and from ten on.
        ("2026-01-27T01:00:00", 119, False),
        ("2026-01-27T01:00:00", 120, True),
        ("2026-01-27T06:00:00", 15, True),
        ("2026-01-27T23:00:00", 119, False),
        # On Wednesday it holds no more; in office hours an hour is asked for.
        ("2026-01-28T01:00:00", 15, True),
        ("2026-01-28T12:00:00", 59, False),
        ("2026-01-28T12:00:00", 60, True),
        # Outside all periods idle_threshold counts.
        ("2026-01-31T12:00:00", 14, False),
        ("2026-01-31T12:00:00", 15, True),
    ],
)
def test_empty_node_leaves_by_the_period_in_force(
    at: str, idle_minutes: float, expected: bool
) -> None:
    """Nodes would go in the middle of a working day, or be paid for all night."""
    assert leaves(at, idle_minutes) == expected


def test_period_is_that_of_the_config_s_time_zone() -> None:
    """At half past four in London it is night in Los Angeles, and nobody needs the node."""
    assert not leaves("2026-01-28T16:30:00", 30)
    assert leaves("2026-01-28T14:30:00", 30, "America/Los_Angeles")
    assert not leaves("2026-01-28T16:30:00", 30, "America/Los_Angeles")


def test_longer_of_grace_period_and_stated_idle_threshold_counts() -> None:
    """A config that states both would give nodes up earlier than either says."""
    assert leaves("2026-01-28T12:00:00", 60, explicit=True)
    assert not leaves("2026-01-28T12:00:00", 59, explicit=True)


AHEAD = {"fleet-reconciler.io/unneeded-since": "2027-01-31T12:00:00Z"}
"""Written while the clock was a year ahead."""
NOTED_NOW = ("a", "unneeded-since", "2026-01-31T12:00:00Z")


@pytest.mark.parametrize("objects", [(), (on("a"), full("b"))], ids=["empty", "under-used"])
def test_timer_of_the_future_begins_anew(objects: tuple[Pod, ...]) -> None:
    """The node would be paid for until the clock has caught up."""
    fleet = make_scene_fleet()
    node = make_node("a", fleet, annotations=FrozenMap(AHEAD))
    made = planned(fleet, node, make_node("b", fleet), *objects)
    assert NOTED_NOW in annotations_set(made)
    assert not any(begins_drain(action) for action in made.actions)


def test_end_of_a_pod_in_the_future_begins_the_timer() -> None:
    """A kubelet whose clock is ahead would keep its node for ever."""
    fleet = make_scene_fleet()
    ended = on("a", phase="Succeeded", finished_at=datetime(2027, 1, 31, tzinfo=UTC))
    assert NOTED_NOW in annotations_set(planned(fleet, make_node("a", fleet), ended))


def test_failed_drain_of_the_future_rests_from_now_on() -> None:
    """The node would never be emptied again."""
    fleet = make_scene_fleet()
    failed = {"fleet-reconciler.io/drain-failed": "2027-01-31T12:00:00Z/3"}
    node = unneeded("a", fleet, annotations=failed)
    made = planned(fleet, node, make_node("b", fleet), on("a"), full("b"))
    assert annotations_set(made) == {("a", "drain-failed", "2026-01-31T12:00:00Z/3")}
    assert kept(made)["a"] == "drain-cool-off"

"""Only time in which a canary could be judged counts as watched."""

from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod
from reconciler.model.containers import ContainerState
from reconciler.model.saved_state import SavedFleetState
from tests.builders import NOW, ago
from tests.unit.planner.disruption.scale_in.scene import full, on
from tests.unit.planner.disruption.updated_fleet import (
    NEW,
    made_of,
    marked,
    node,
    remembered,
    state,
    watched,
)

Saved = tuple[SavedFleetState, ...]


def noted(states: Saved) -> tuple[float | None, float | None, bool]:
    """For how many seconds the version is watched, how long ago last, and whether it is proven."""
    (saved,) = [
        saved_fleet_state for saved_fleet_state in states if saved_fleet_state.canary_version == NEW
    ]
    times = (saved.canary_since, saved.canary_seen_at)
    since, seen = (None if at is None else (NOW - at).total_seconds() for at in times)
    return since, seen, saved.canary_proven


OLD_NODES: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b")]
LOOPS = (ContainerState(kind="container", waiting="CrashLoopBackOff", restarts=9),)


def crashing(since: float) -> Pod:
    """A pod that came to node c so many seconds ago, and crashes."""
    return on(
        "c",
        "app",
        restarts=9,
        ready=False,
        containers=LOOPS,
        scheduled_at=ago(since),
        started_at=ago(since),
    )


@pytest.mark.parametrize("away", [30, 605, 7200])
def test_canary_that_failed_while_the_program_was_away_halts(away: float) -> None:
    """It was away for all of canary_time, and the whole fleet got an image on which all crash."""
    made = made_of(
        *OLD_NODES,
        node("c", away + 300),
        crashing(away),
        new="c",
        fleet_states=watched(away, seen=away),
    )
    assert (state(made), marked(made)) == ("halted", {})


def test_canary_that_fell_silent_while_the_program_was_away_halts() -> None:
    """Its version counted as proven by the time that had gone, and was never halted again."""
    dead = node("c", 2100, ready=False, ready_changed_at=ago(1200))
    made = made_of(*OLD_NODES, dead, new="c", fleet_states=watched(1500, seen=1200))
    assert state(made) == "halted"


@pytest.mark.parametrize("away", [900, 7200])
def test_time_in_which_the_program_was_away_does_not_count(away: float) -> None:
    """A pod that crashes every four minutes was restarted twice when nobody had looked yet."""
    objects: list[Node | Pod] = [*OLD_NODES, node("c", away + 300), on("c")]
    made = made_of(*objects, new="c", fleet_states=watched(away + 60, seen=away))
    assert (state(made), marked(made)) == ("canary", {})
    assert made.updates[0].because == "the first new node is watched for another 7m"
    assert noted(made.fleet_states) == (180, 0, False)


@pytest.mark.parametrize(("seen", "saved"), [(20, 20), (60, 0), (119, 0)])
def test_last_look_is_saved_once_a_minute(seen: float, saved: float) -> None:
    """The Lease was written in each cycle."""
    objects: list[Node | Pod] = [*OLD_NODES, node("c", 900), on("c")]
    made = made_of(*objects, new="c", fleet_states=watched(300, seen=seen))
    assert noted(made.fleet_states) == (300, saved, False)


def test_proven_version_is_noted_as_such() -> None:
    """A longer canary_time in the config would put it on trial again."""
    objects: list[Node | Pod] = [*OLD_NODES, node("c", 900), on("c")]
    made = made_of(*objects, new="c", fleet_states=watched(600))
    assert (state(made), len(marked(made))) == ("waiting", 2)
    assert noted(made.fleet_states) == (600, None, True)


UNJUDGED: dict[str, dict[str, Any]] = {
    "clocks": {"server_time": ago(3600)},
    "untold": {"live": {"launch_template_version": "$Latest"}},
}


@pytest.mark.parametrize("why", UNJUDGED)
def test_time_in_which_nothing_may_be_judged_does_not_count(why: str) -> None:
    """EC2 did not tell the version for eleven minutes, and what crashed meanwhile was proven."""
    known = watched(700, seen=690)
    objects: list[Node | Pod] = [*OLD_NODES, node("c", 900), crashing(690)]
    made = made_of(*objects, new="c", fleet_states=known, **UNJUDGED[why])
    assert (marked(made), noted(made.fleet_states)) == ({}, (700, 690, False))
    again = made_of(*objects, new="c", fleet_states=made.fleet_states)
    assert state(again) == "halted"
    fine: list[Node | Pod] = [*OLD_NODES, node("c", 900), on("c")]
    assert state(made_of(*fine, new="c", fleet_states=made.fleet_states)) == "canary"


@pytest.mark.parametrize("since", [590, 610, 7200])
def test_outage_proves_nothing(since: float) -> None:
    """While all nodes were silent the watch went on, and its end proved the version."""
    silent = [node(n, 9000, ready=False, ready_changed_at=ago(500)) for n in ("a", "b", "p", "q")]
    objects: list[Node | Pod] = [*silent, node("c", 9000), crashing(since)]
    known = watched(since, seen=min(since, 560))
    made = made_of(*objects, new="c", fleet_states=known)
    assert (state(made), marked(made)) == ("canary", {})
    assert noted(made.fleet_states) == (since, min(since, 560), False)


def test_lifted_halt_is_proven_in_time_though_the_sign_goes_on() -> None:
    """The update that a person let go on would replace one node at a time for good."""
    objects: list[Node | Pod] = [*OLD_NODES, node("c", 900), crashing(700)]
    made = made_of(*objects, new="c", fleet_states=watched(600, resumed_version=NEW))
    assert (state(made), len(marked(made))) == ("waiting", 2)


EARLIER = remembered(canary_version=NEW, canary_since=ago(900))
"""As a program noted it that knew a version as proven by the time that had gone."""


@pytest.mark.parametrize("states", [(), EARLIER], ids=["nothing", "no-last-look"])
def test_version_of_which_no_look_is_known_is_judged_by_its_nodes(states: Saved) -> None:
    """The first plan after an upgrade of this program proved what had crashed for 15 minutes."""
    objects: list[Node | Pod] = [*OLD_NODES, node("c", 1800)]
    made = made_of(*objects, crashing(900), new="c", fleet_states=states)
    assert state(made) == "halted"
    pods: dict[str, Any] = {"scheduled_at": ago(900), "started_at": ago(900)}
    made = made_of(*objects, on("c", restarts=3, **pods), new="c", fleet_states=states)
    assert state(made) == "waiting", "it was restarted some time ago"
    assert noted(made.fleet_states) == (900, None, True)


def test_watch_of_which_no_look_is_known_begins_again() -> None:
    """Nobody knows how much of it was seen."""
    objects: list[Node | Pod] = [*OLD_NODES, node("c", 900), on("c", scheduled_at=ago(300))]
    earlier = remembered(canary_version=NEW, canary_since=ago(300))
    made = made_of(*objects, new="c", fleet_states=earlier)
    assert noted(made.fleet_states) == (0, 0, False)

"""What the pages say of a replica's role."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.adapters.memory import ManualClock
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.plan import Plan
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.web.board import LOST_SECONDS, StatusBoard
from reconciler.web.metrics import Metrics
from reconciler.web.routes import Answer, Routes
from reconciler.web.verdict import verdict_of
from reconciler.web.view import LeadershipView
from tests.builders import HOME
from tests.unit.web.scene import COST

LEADER = LeadershipView(enabled=True, leads=True, holder="pod-1")
STANDBY = LeadershipView(enabled=True, leads=False, holder="pod-2")
CUT_OFF = LeadershipView(enabled=True, leads=False, holder="pod-1", trouble="no answer")


def ask(view: LeadershipView, path: str, *, synced: bool = True) -> Answer:
    """One answer of a replica with this role."""
    clock = ManualClock()
    board = StatusBoard(clock, "1", lambda: synced, lambda: view)
    plan = Plan(at=clock.now(), cluster="analytics", home_region=HOME, cost=COST)
    board.plan_made(Snapshot(at=clock.now(), cluster=ClusterState()), plan)
    return Routes(board, Metrics(board, clock, "1")).answer(path)


@pytest.mark.parametrize(("view", "word"), [(LEADER, b"leader\n"), (STANDBY, b"standby\n")])
def test_leader_and_standby_are_both_ready(view: LeadershipView, word: bytes) -> None:
    """A standby that is not ready would hold up every rolling update."""
    answer = ask(view, "/readyz")
    assert (answer.status, answer.body) == (200, word)


def test_replica_without_caches_is_not_ready_whatever_its_role() -> None:
    """It could not take over."""
    assert ask(STANDBY, "/readyz", synced=False).status == 503


def test_metric_and_status_say_who_leads() -> None:
    """The alert that nobody leads, or two, counts them."""
    assert b"fleet_reconciler_leader 1.0" in ask(LEADER, "/metrics").body
    assert b"fleet_reconciler_leader 0.0" in ask(STANDBY, "/metrics").body
    status = json.loads(b"".join(ask(STANDBY, "/api/status").parts()))
    assert status["leader_election"]["holder"] == "pod-2"
    assert not status["leader_election"]["leads"]


def test_page_says_why_a_replica_stands_by() -> None:
    """The first question of whoever looks at the wrong one of two."""
    assert b"leader (pod-1)" in ask(LEADER, "/").body
    assert b"standby (current leader: pod-2)" in ask(STANDBY, "/").body
    assert b"no answer" in ask(CUT_OFF, "/").body


def lost_lead(now: LeadershipView) -> tuple[StatusBoard, ManualClock]:
    """A replica that led and lost the Lease, and what it knows of the lead since."""
    clock, views = ManualClock(), [LEADER]
    board = StatusBoard(clock, "1", lambda: True, lambda: views[0])
    plan = Plan(at=clock.now(), cluster="analytics", home_region=HOME, cost=COST)
    board.plan_made(Snapshot(at=clock.now(), cluster=ClusterState()), plan)
    board.cycle_ended(CycleReport(number=1, plan=plan))
    board.lead_gained()
    views[0] = now
    board.lead_lost("the Lease could not be renewed")
    return board, clock


def test_lead_that_another_has_for_long_leaves_a_standby() -> None:
    """After each change of leaders the old one was degraded until somebody restarted it."""
    board, clock = lost_lead(STANDBY)
    kinds = []
    for _ in range(3):
        kinds.append([cause.kind for cause in verdict_of(board).causes if cause.level != "failing"])
        clock.advance(LOST_SECONDS - 1)
    assert kinds == [["lease-lost"], ["lease-lost"], ["not-leader"]]
    board.lead_gained()
    board.lead_lost("the Lease could not be renewed")
    assert board.leadership.lost


@pytest.mark.parametrize("now", [replace(STANDBY, holder=""), CUT_OFF], ids=["free", "cut-off"])
def test_lead_that_nobody_is_known_to_have_stays_lost(now: LeadershipView) -> None:
    """Nothing may be bought for as long as this lasts."""
    board, clock = lost_lead(now)
    clock.advance(10 * LOST_SECONDS)
    assert board.leadership.lost


def test_lead_that_came_and_went_unasked_is_reported_to_the_first_who_asks() -> None:
    """A Lease that was lost at night read as a standby that never led, and the History had none."""
    clock, views = ManualClock(), [LEADER]
    board = StatusBoard(clock, "1", lambda: True, lambda: views[0])
    board.lead_gained()
    clock.advance(600)
    views[0] = STANDBY
    board.lead_lost("pod-2 has taken the Lease")
    clock.advance(600)
    assert board.leadership.lost
    ended, began = board.history.decisions
    assert (began.what, began.because) == ("began to lead", "current leader: pod-1")
    assert (ended.what, ended.because) == ("leads no longer", "pod-2 has taken the Lease")
    assert (clock.now() - began.at, clock.now() - ended.at) == (
        timedelta(seconds=1200),
        timedelta(seconds=600),
    )

"""Plans are made while the garbage collector is off."""

import gc

import pytest

from reconciler.bootstrap.planning import planning
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import make_fleet_settings, make_pod, make_settings, make_snapshot


def test_collector_is_off_while_a_plan_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would walk all pods of the cluster again and again: a fifth of a large plan's time."""
    seen: list[bool] = []

    def watched(snapshot: Snapshot, settings: PlannerSettings) -> Plan:
        seen.append(gc.isenabled())
        return plan(snapshot, settings)

    monkeypatch.setattr(planning, "plan_for_all", watched)
    settings = make_settings(make_fleet_settings())
    made = planning.plan_without_gc(make_snapshot(make_pod("p")), settings)
    assert made.placements
    assert seen == [False]
    assert gc.isenabled()

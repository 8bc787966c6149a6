"""The work of finding out why many kinds of pods get no node of many fleets."""

from decimal import Decimal
from typing import Any

import pytest

from reconciler.planner import raise_limits
from reconciler.planner.planner import plan
from reconciler.planner.settings import RaiseLimits
from tests.builders import make_fleet_settings, make_pod, make_settings, make_snapshot


def test_reasons_do_not_look_at_all_fleets_for_each_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """`max_hourly_usd` is reached: 300 fleets and 200 kinds of pods took 18 s of CPU per plan."""
    calls = 0
    ran_before = raise_limits.ran_before

    def counted(view: Any) -> tuple[int, int]:
        nonlocal calls
        calls += 1
        return ran_before(view)

    monkeypatch.setattr(raise_limits, "ran_before", counted)
    fleets = [make_fleet_settings(f"s{i}", cpu=4, price=f"0.{100 + i}") for i in range(40)]
    pods = [make_pod(f"p{i}", cpu=f"{1000 + i}m") for i in range(50)]
    settings = make_settings(*fleets, usd_per_hour_max=Decimal("0.2"), raise_limits=RaiseLimits())
    made = plan(make_snapshot(*pods), settings)
    assert len(made.unplaceable) > 40
    assert calls < len(fleets) + len(pods)  # it was 50 x 40: each of them reads all 40 fleets

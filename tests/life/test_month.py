"""A month of a mixed workload: idle time, node-hours against a clairvoyant's, protected pods."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.life.month.bound import (
    Interval,
    bare_seconds,
    boot_seconds,
    least_bins,
    lingering,
    needed,
)
from tests.life.month.report import figures, plot, summary, table
from tests.life.month.simulation import IDLE_SECONDS, SLEEP_SECONDS, Month, Outcome
from tests.life.month.trace import arrivals, drawn, present

USUAL_DAYS = 1
DAYS = float(os.environ.get("RECONCILER_MONTH_DAYS", USUAL_DAYS))  # noqa: TID251 - how long to play
"""`make month` plays 30."""
TWO_CYCLES_SECONDS = 5.0
"""From the taint to the end of an empty node: the check is made in a plan of its own."""
SHARE_MAX = 1.10


def broken(found: Outcome) -> list[str]:
    """What a month must not show."""
    total = figures(found)[-1]
    wrong = []
    if max(found.idle) > IDLE_SECONDS + SLEEP_SECONDS + TWO_CYCLES_SECONDS:
        wrong.append(f"a node stood idle for {max(found.idle):.0f} s")
    if total.hours > SHARE_MAX * total.policy:
        wrong.append(f"{total.hours:.0f} node-hours, {total.policy:.0f} would have done")
    if found.protected_evictions or found.jobs_lost:
        wrong.append(
            f"{found.protected_evictions} protected evictions, {found.jobs_lost} Jobs lost"
        )
    if found.wait(99) > 2 * IDLE_SECONDS:
        wrong.append(f"pods waited {found.wait(99):.0f} s")
    return wrong


@pytest.mark.timeout(3000)
def test_month_is_cheap_quick_to_let_go_and_kills_nothing(
    tmp_path: Path, closing_lines: list[str]
) -> None:
    """What operators judge an autoscaler by, after they have left it alone for a month."""
    found = Month(arrivals(DAYS), DAYS).run()
    closing_lines.append(f"month: {summary(found, real=present())}\n{table(figures(found))}")
    (tmp_path / "month.svg").write_text(plot(found), encoding="utf-8")
    assert broken(found) == []


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_drawn_workload_stands_in_for_the_traces() -> None:
    """Where the data is absent the test would be empty."""
    found = Month(drawn(0.5), 0.5).run()
    assert found.pods > 200
    assert set(found.nodes) == {"services", "ci", "batch"}
    assert found.protected_evictions == found.jobs_lost == 0


@pytest.mark.parametrize(
    ("sizes", "bins"),
    [({5: 4}, 2), ({6: 4}, 4), ({6: 2, 4: 2}, 2), ({7: 2, 4: 2}, 3), ({10: 3, 1: 5}, 4), ({}, 0)],
)
def test_bins_of_ten_are_counted_as_martello_and_toth_do(sizes: dict[int, int], bins: int) -> None:
    """A bound that is too high would call every policy wasteful, one too low every policy good."""
    assert least_bins(Counter(sizes), 10) == bins


def test_node_seconds_are_least_when_short_gaps_are_kept() -> None:
    """A clairvoyant does not boot anew for a gap that is shorter than a boot."""
    pods = [Interval(0, 100, (10, 1)), Interval(110, 200, (10, 1)), Interval(400, 500, (10, 1))]
    steps = needed(pods, (10, 10))
    assert bare_seconds(steps, 1000) == 290
    assert boot_seconds(steps, 1000, 50) == 290 + 50 + 10 + 50
    assert bare_seconds(lingering(steps, 60), 1000) == 260 + 160

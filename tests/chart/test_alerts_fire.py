"""Each alert fires in its time, and not before, as Prometheus itself evaluates the rules."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.chart.rules import FILES, alerts
from tests.project.go_tools import promtool

UP = 'fleet_reconciler_build_info{pod="a"}'
FIRING: dict[str, tuple[dict[str, str], int]] = {
    "FleetReconcilerStalled": ({"fleet_reconciler_last_success_age_seconds": "0 301x200"}, 2),
    "FleetReconcilerNoLeader": (
        {
            'fleet_reconciler_leader{pod="a"}': "1x200",
            'fleet_reconciler_leader{pod="b"}': "0 1x200",
        },
        2,
    ),
    "FleetReconcilerWrongCluster": (
        {'fleet_reconciler_cluster_bound{verdict="unproven"}': "0 1x200"},
        5,
    ),
    "FleetReconcilerPlanningFails": (
        {'fleet_reconciler_trouble{kind="planning-failed"}': "0 1x200"},
        2,
    ),
    "FleetReconcilerCloudUnusable": (
        {
            'fleet_reconciler_trouble{kind="ec2-denied"}': "0 1x200",
            'fleet_reconciler_trouble{kind="ec2-silent"}': "0x200",
            'fleet_reconciler_trouble{kind="not-leader"}': "1x200",
        },
        5,
    ),
    "FleetReconcilerActionsFail": (
        {'fleet_reconciler_actions_total{outcome="failed"}': "0 0+1x200"},
        5,
    ),
    "FleetReconcilerCloudCallsFail": (
        {'fleet_reconciler_trouble{kind="ec2-call-fails"}': "0 1x200"},
        3,
    ),
    "FleetReconcilerPodsUnplaceable": ({"fleet_reconciler_pods_unplaceable": "0 3x200"}, 15),
    "FleetReconcilerNoProgress": ({"fleet_reconciler_demand_quarantined": "0 1x200"}, 0),
    "FleetReconcilerPodsNotBound": (
        {'fleet_reconciler_trouble{kind="not-bound"}': "0 1x200"},
        5,
    ),
    "FleetReconcilerBelowMinimum": (
        {'fleet_reconciler_trouble{kind="below-minimum"}': "0 1x200"},
        15,
    ),
    "FleetReconcilerNodesHeld": ({"fleet_reconciler_nodes_held": "0 1x200"}, 10),
    "FleetReconcilerConfigRefused": ({"fleet_reconciler_config_valid": "1 0x200"}, 5),
    "FleetReconcilerSecondLoopFails": (
        {'fleet_reconciler_trouble{kind="second-loop-fails"}': "0 1x200"},
        5,
    ),
    "FleetReconcilerClockSkewed": ({"fleet_reconciler_clock_skew_seconds": "0 -121x200"}, 5),
    "FleetReconcilerQueueUnreadable": (
        {"fleet_reconciler_interruption_queue_readable": "1 0x200"},
        5,
    ),
    "FleetReconcilerUpdateHalted": (
        {'fleet_reconciler_rolling_update{state="halted"}': "0 1x200"},
        0,
    ),
    "FleetReconcilerDrift": (
        {'fleet_reconciler_fleet_drift{fleet="f",kind="tags-differ"}': "0 1x200"},
        60,
    ),
    "FleetReconcilerOrphans": ({"fleet_reconciler_orphan_instances": "0 1x200"}, 120),
}
"""Series of each alert, which begin to say so after a minute, and after how many more it fires."""


@pytest.fixture(scope="module")
def tool() -> str:
    """The program."""
    return promtool()


def test_every_alert_is_fired_here() -> None:
    """An alert that was never seen to fire may never do so."""
    assert list(FIRING) == [rule["alert"] for rule in alerts()]


def firing_after(
    tool: str, folder: Path, name: str, series: Mapping[str, str], checks: Mapping[int, int]
) -> None:
    """Evaluate the rules over series, a sample a minute; `checks` are alerts firing by minute."""
    firing = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)'
    test = {
        "rule_files": [str(FILES / "alerts.yaml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "promql_expr_test": [
                    {
                        "expr": firing,
                        "eval_time": f"{minute}m",
                        "exp_samples": [{"labels": "{}", "value": number}],
                    }
                    for minute, number in checks.items()
                ],
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(test))
    command = [tool, "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", FIRING)
def test_alert_fires_in_its_time_and_not_before(name: str, tool: str, tmp_path: Path) -> None:
    """An alert that never fires looks like a cluster in which all is well."""
    series, minutes = FIRING[name]
    firing_after(tool, tmp_path, name, {**series, UP: "1x300"}, {minutes: 0, minutes + 2: 1})


def test_failures_are_summed_over_policies(tool: str, tmp_path: Path) -> None:
    """One denied call fails for scale-up, for the minimum and in a region that stands in."""
    name = 'fleet_reconciler_actions_total{{action="set-capacity",outcome="failed",policy="{}"}}'
    policies = ("scale-up", "min-capacity", "overflow")
    failing = {name.format(policy): "0 0+0.25x60" for policy in policies}
    firing_after(tool, tmp_path, "FleetReconcilerActionsFail", {**failing, UP: "1x60"}, {20: 1})


def test_program_that_is_not_there_is_an_alert(tool: str, tmp_path: Path) -> None:
    """It has no metrics to compare."""
    firing_after(tool, tmp_path, "FleetReconcilerStalled", {UP: "1 _x60"}, {0: 0, 15: 1})


def test_program_that_pauses_for_a_quarter_of_an_hour_is_not_stalled(
    tool: str, tmp_path: Path
) -> None:
    """With `sleep_interval: 15m` a quiet cluster would page somebody in each pause."""
    series = {
        "fleet_reconciler_last_success_age_seconds": "0+60x120",
        "fleet_reconciler_longest_pause_seconds": "900x120",
        UP: "1x120",
    }
    firing_after(tool, tmp_path, "FleetReconcilerStalled", series, {40: 0, 50: 1})

"""Disruption budgets of a config: what they become, and which of their keys exclude each other."""

from datetime import time

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.config.faults import RANGE, TYPE
from reconciler.config.planning.settings import DEFAULT_BUDGETS, planner_settings
from reconciler.planner.disruption_settings import DISRUPTION_REASONS, DisruptionBudget
from reconciler.planner.settings import PlannerSettings
from tests.unit.config.documents import config_of, found, with_fleets


def settings_of(text: str) -> PlannerSettings:
    """What the planner gets of a config with one fleet."""
    return planner_settings(
        config_of("cluster: c\n" + text + with_fleets("{size: small}")), load_catalogue()
    )


def test_without_a_budget_a_tenth_of_the_nodes_may_be_disrupted() -> None:
    """Empty nodes are left to max_empty_at_once: their end disturbs no pod."""
    assert settings_of("").disruption_budgets == DEFAULT_BUDGETS
    (budget,) = DEFAULT_BUDGETS
    assert (budget.allowed(41), budget.allowed(1)) == (5, 1)
    assert budget.reasons == DISRUPTION_REASONS - {"empty"}


def test_stated_budget_is_for_all_reasons_and_takes_the_place_of_the_default() -> None:
    """The page says so, and as Karpenter's users know it."""
    (budget,) = settings_of("disruption_budgets: [{nodes: 10%}]\n").disruption_budgets
    assert budget == DisruptionBudget(nodes=10, percent=True)
    assert budget.reasons == DISRUPTION_REASONS


def test_window_and_reasons_arrive() -> None:
    """A budget for office hours would hold at night."""
    text = "{nodes: 0, starts: '08:00', ends: '18:00', days: [mon, fri], reasons: [drifted, empty]}"
    (budget,) = settings_of(f"disruption_budgets: [{text}]\n").disruption_budgets
    assert (budget.starts, budget.ends, budget.weekdays) == (time(8), time(18), frozenset({1, 5}))
    assert budget.reasons == {"drifted", "empty"}
    assert (budget.nodes, budget.percent) == (0, False)


@pytest.mark.parametrize(
    ("budget", "key"),
    [
        ("{nodes: 1, schedule: 0 2 * * 6}", "schedule"),
        ("{nodes: 1, duration: 4h}", "duration"),
        ("{nodes: 1, schedule: 0 2 * * 6, duration: 4h, starts: '08:00'}", "starts"),
        ("{nodes: 1, schedule: 0 2 * * 6, duration: 4h, days: [sat]}", "days"),
    ],
)
def test_keys_that_contradict_each_other_are_a_fault(budget: str, key: str) -> None:
    """A budget that holds never, or always, is found out on a bad night."""
    text = f"disruption_budgets: [{budget}]\n" + with_fleets("{size: small}")
    assert [(code, path) for code, path, _, _ in found(text)] == [
        (RANGE, f"disruption_budgets[0].{key}")
    ]


@pytest.mark.parametrize("nodes", ["-1", "101%", "-5%", "1000000"])
def test_budget_out_of_bounds_is_a_range_fault(nodes: str) -> None:
    """A program that sorts faults by their code would take a number for the wrong type."""
    for text in (
        f"disruption_budgets: [{{nodes: {nodes}}}]\n",
        f"blast_radius: {{pods_per_controller: {nodes}, per: 1h}}\n",
    ):
        assert [code for code, _, _, _ in found(text)] == ["config/range"], text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("@daily", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@annually", "0 0 1 1 *"),
        ("@midnight", "0 0 * * *"),
        ("0 9 ? * 1-5", "0 9 * * 1-5"),
        ("0 9 * * 7", "0 9 * * 7"),
        ("0 9 * * 5#2", "0 9 * * 5#2"),
        ("0 9 L * *", "0 9 L * *"),
    ],
)
def test_schedules_of_karpenters_budgets_are_taken(written: str, meant: str) -> None:
    """The budget on Karpenter's own page (`@daily`) would be refused; crontab's days stay."""
    text = f"disruption_budgets: [{{nodes: 0, schedule: '{written}', duration: 10m}}]\n"
    (budget,) = settings_of(text).disruption_budgets
    assert budget.schedule == meant


@pytest.mark.parametrize("schedule", ["@reboot", "@every 5m", "0 9 * *", "0 0 9 * * *"])
def test_what_is_no_schedule_is_a_fault(schedule: str) -> None:
    """A budget that never holds would not be noticed."""
    text = f"disruption_budgets: [{{nodes: 0, schedule: '{schedule}', duration: 10m}}]\n"
    assert [(code, path) for code, path, _, _ in found(text + with_fleets("{size: small}"))] == [
        (TYPE, "disruption_budgets[0].schedule")
    ]

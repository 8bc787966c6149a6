"""Disruption budgets: how many nodes are disrupted together, for which reasons, and when."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from reconciler.config.planning.settings import DEFAULT_BUDGETS
from reconciler.model.actions import SetCapacity, TaintNode
from reconciler.model.cluster import Node
from reconciler.model.plan import Plan
from reconciler.planner.disruption.limits.disruption_budgets import is_in_force
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_settings,
)
from tests.unit.planner.disruption.scale_in.consolidation import LARGE, SMALL
from tests.unit.planner.disruption.scale_in.consolidation import planned as consolidating
from tests.unit.planner.disruption.scale_in.scene import (
    FLEET,
    full,
    kept,
    on,
    planned,
    told,
    unneeded,
)

MANY = ScaleInSettings(non_empty_at_once_max=10)
HURRIED = replace(FLEET, scale_in=MANY)


def with_budgets(*objects: Any, fleet: FleetSettings = HURRIED, **budgets: Any) -> Plan:
    """The plan under budgets of the cluster (`cluster`), the sector or the fleet."""
    fleet = replace(fleet, disruption_budgets=budgets.get("fleet_budgets", ()))
    settings = make_settings(fleet, disruption_budgets=budgets.get("cluster", ()))
    (sector,) = settings.sectors
    sector = replace(sector, disruption_budgets=budgets.get("sector", ()))
    return planned(replace(settings, sectors=(sector,)), *objects)


def empties(count: int) -> list[Any]:
    """Empty nodes whose time has come, beside nine full ones."""
    idle = [unneeded(f"e{number}", HURRIED) for number in range(count)]
    busy = [make_node(f"f{number}", HURRIED) for number in range(9)]
    return [*idle, *busy, *(full(f"f{number}") for number in range(9))]


@pytest.mark.parametrize("scope", ["cluster", "sector", "fleet_budgets"])
@pytest.mark.parametrize(
    ("budget", "goes"),
    [
        (DisruptionBudget(nodes=0), 0),
        (DisruptionBudget(nodes=2), 2),
        (DisruptionBudget(nodes=10, percent=True), 2),
        (DisruptionBudget(nodes=0, reasons=frozenset({"drifted"})), 3),
    ],
)
def test_budget_limits_empty_nodes_in_each_scope(
    scope: str, budget: DisruptionBudget, goes: int
) -> None:
    """Twelve nodes, of which three are empty; a tenth is rounded up."""
    budgets: dict[str, Any] = {scope: (budget,)}
    made = with_budgets(*empties(3), **budgets)
    assert len(told(made, TaintNode)) == goes
    codes = [code for name, code in kept(made).items() if name.startswith("e")]
    assert codes == ["disruption-budget"] * (3 - goes)


def test_strictest_budget_wins() -> None:
    """A generous budget of the cluster would undo what a team asked for its fleet."""
    generous, strict = DisruptionBudget(nodes=10), DisruptionBudget(nodes=1)
    made = with_budgets(*empties(3), cluster=(generous,), fleet_budgets=(strict,))
    assert len(told(made, TaintNode)) == 1


@pytest.mark.parametrize("broken", [{"draining": True}, {"ready": False}])
def test_nodes_that_are_disrupted_already_use_the_budget_up(broken: dict[str, Any]) -> None:
    """A rollout on top of an outage."""
    objects = [*empties(1), make_node("broken", HURRIED, **broken), full("broken")]
    assert told(with_budgets(*objects, cluster=(DisruptionBudget(nodes=2),)), TaintNode) == ["e0"]
    made = with_budgets(*objects, cluster=(DisruptionBudget(nodes=1),))
    assert told(made, TaintNode) == []
    assert kept(made)["e0"] == "disruption-budget"


@pytest.mark.parametrize(
    ("ends", "pods", "goes"),
    [
        ({"leaving": True}, True, []),
        ({"leaving": True}, False, ["e0"]),
        ({"state": "shutting-down"}, True, ["e0"]),
    ],
)
def test_node_whose_instance_ends_counts_while_a_hook_holds_it_for_its_pods(
    ends: dict[str, Any], *, pods: bool, goes: list[str]
) -> None:
    """Its pods are being moved; once they have left, its end disturbs nobody."""
    broken = make_node("broken", HURRIED, draining=True)
    objects = [*empties(2), broken, *([full("broken")] if pods else [])]
    settings = make_settings(HURRIED, disruption_budgets=(DisruptionBudget(nodes=1),))
    nodes = [each for each in objects if isinstance(each, Node)]
    cloud = make_cloud_of(nodes, make_fleet(HURRIED, len(nodes) - 1))
    instances = (
        replace(instance, **ends) if instance.id == broken.instance_id else instance
        for instance in cloud.instances
    )
    made = planned(settings, *objects, cloud=replace(cloud, instances=tuple(instances)))
    assert [name for name in told(made, TaintNode) if name != "broken"] == goes


def test_budget_of_a_sector_holds_beside_the_default() -> None:
    """A team that asks for more than a tenth of its nodes would set aside the cluster's limit."""
    half = (DisruptionBudget(nodes=50, percent=True),)
    nodes = [unneeded(name, HURRIED) for name in ("a", "b")]
    busy = [make_node(f"f{number}", HURRIED) for number in range(4)]
    pods = [on("a"), on("b"), *(full(f"f{number}") for number in range(4))]
    assert len(told(with_budgets(*nodes, *busy, *pods, sector=half), TaintNode)) == 2
    made = with_budgets(*nodes, *busy, *pods, sector=half, cluster=DEFAULT_BUDGETS)
    assert len(told(made, TaintNode)) == 1


def test_node_that_still_starts_uses_no_budget_up() -> None:
    """A wave of launches would stop all scale-in."""
    young = make_node("young", HURRIED, ready=False, created_at=ago(60))
    made = with_budgets(*empties(1), young, cluster=(DisruptionBudget(nodes=1),))
    assert told(made, TaintNode) == ["e0"]


def test_under_used_nodes_are_limited_by_their_own_reason() -> None:
    """Empty nodes may go at any time, drains wait for the window."""
    nodes = [unneeded("a", HURRIED), unneeded("b", HURRIED), make_node("c", HURRIED)]
    pods = [on("a"), on("b"), on("c", cpu="1")]
    drains = DisruptionBudget(nodes=1, reasons=frozenset({"underutilized"}))
    assert told(with_budgets(*nodes, *pods), TaintNode) == ["a", "b"]
    assert told(with_budgets(*nodes, *pods, cluster=(drains,)), TaintNode) == ["a"]
    others = replace(drains, nodes=0, reasons=frozenset({"empty", "consolidation"}))
    assert told(with_budgets(*nodes, *pods, cluster=(others,)), TaintNode) == ["a", "b"]


def test_node_that_waits_for_its_replacement_uses_the_budget_up() -> None:
    """Replacements for a whole fleet would be bought at once, and its nodes then drained."""
    hurried = tuple(replace(fleet, scale_in=MANY) for fleet in (SMALL, LARGE))
    nodes = [unneeded(name, hurried[1], unschedulable=True) for name in ("l", "m")]
    pods = [on("l", cpu="3"), on("m", cpu="3")]
    free = consolidating(*nodes, *pods, fleets=hurried)
    (raised,) = [a for a in free.actions if isinstance(a, SetCapacity)]
    assert raised.to_capacity == 2
    one = (DisruptionBudget(nodes=1),)
    made = consolidating(*nodes, *pods, fleets=hurried, disruption_budgets=one)
    (raised,) = [a for a in made.actions if isinstance(a, SetCapacity)]
    assert raised.to_capacity == 1
    assert kept(made)["m"] == "disruption-budget"


@pytest.mark.parametrize(
    ("schedule", "first", "end"),
    [
        # 29 March 2026: at 01:00 UTC clocks in Berlin go from 02:00 to 03:00.
        ("0 1 * * 0", "2026-03-29T00:00:00", "2026-03-29T04:00:00"),
        ("30 4 29 3 *", "2026-03-29T02:30:00", "2026-03-29T06:30:00"),
        ("30 2 29 3 *", "2026-03-29T01:30:00", "2026-03-29T05:30:00"),
        # 25 October 2026: at 01:00 UTC they go back from 03:00 to 02:00, which comes twice.
        ("0 1 * * 0", "2026-10-24T23:00:00", "2026-10-25T03:00:00"),
        ("30 2 25 10 *", "2026-10-25T00:30:00", "2026-10-25T05:30:00"),
        ("0 5 25 10 *", "2026-10-25T04:00:00", "2026-10-25T08:00:00"),
    ],
)
def test_schedule_holds_to_the_minute_when_the_clocks_change(
    schedule: str, first: str, end: str
) -> None:
    """Once a year a freeze of four hours would end after three."""
    budget = DisruptionBudget(nodes=0, schedule=schedule, duration_seconds=4 * 3600)
    begins, minute = moment(first), timedelta(minutes=1)
    hours = [begins + i * minute for i in range(-3 * 60, 9 * 60)]
    held = [at for at in hours if is_in_force(budget, at, "Europe/Berlin")]
    assert (held[0], held[-1] + minute) == (begins, moment(end))
    assert len(held) == (held[-1] - held[0]) / minute + 1


def test_fleet_that_is_to_go_is_limited_as_drifted() -> None:
    """An approved removal would drain a sector in office hours."""
    going = replace(HURRIED, departing=True, max_capacity=0)
    other = make_fleet_settings("other")
    nodes = [unneeded("a", going), make_node("b", other)]
    for reasons, goes in (({"drifted"}, []), ({"underutilized"}, ["a"])):
        budget = DisruptionBudget(nodes=0, reasons=frozenset(reasons))  # type: ignore[arg-type]
        settings = make_settings(going, other, disruption_budgets=(budget,))
        assert told(planned(settings, *nodes, on("a"), on("b", cpu="1")), TaintNode) == goes


def moment(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        ("2026-01-27T08:00:00", True),  # a Tuesday in winter: London has UTC
        ("2026-01-27T17:59:59", True),
        ("2026-01-27T18:00:00", False),
        ("2026-01-31T12:00:00", False),  # a Saturday
        ("2026-07-28T07:00:00", True),  # summer: eight o'clock in London
    ],
)
def test_window_is_one_of_local_time(at: str, holds: bool) -> None:
    """Office hours move with the clocks."""
    office = DisruptionBudget(
        nodes=0, starts=time(8), ends=time(18), weekdays=frozenset({1, 2, 3, 4, 5})
    )
    assert is_in_force(office, moment(at), "Europe/London") == holds


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        ("2026-01-30T23:00:00", False),  # a Friday
        ("2026-01-31T01:00:00", False),
        ("2026-01-31T21:59:59", False),
        ("2026-01-31T22:00:00", True),
        ("2026-02-01T03:59:59", True),  # the Sunday after it
        ("2026-02-01T04:00:00", False),
        ("2026-02-01T23:00:00", False),
    ],
)
def test_overnight_window_is_of_the_day_on_which_it_starts(at: str, holds: bool) -> None:
    """A freeze of Saturday's night that ended at midnight let nodes go in the other half."""
    night = DisruptionBudget(nodes=0, starts=time(22), ends=time(4), weekdays=frozenset({6}))
    assert is_in_force(night, moment(at), "UTC") == holds


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        ("2026-01-31T01:59:59", False),
        ("2026-01-31T02:00:00", True),
        ("2026-01-31T05:59:59", True),
        ("2026-01-31T06:00:00", False),
        ("2026-02-01T03:00:00", False),
    ],
)
def test_schedule_holds_for_its_duration(at: str, holds: bool) -> None:
    """Saturdays from two to six, as a cron expression says it."""
    night = DisruptionBudget(nodes=1, schedule="0 2 * * 6", duration_seconds=4 * 3600)
    assert is_in_force(night, moment(at), "UTC") == holds

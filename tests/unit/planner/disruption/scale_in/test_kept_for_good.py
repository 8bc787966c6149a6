"""Nodes that a limit keeps for good hold up no other node (docs/scale-in.md)."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.actions import UNNEEDED_SINCE, TaintNode
from reconciler.model.cluster import Owner, Pod, PodDisruptionBudget
from reconciler.model.plan import Plan
from reconciler.planner.disruption_settings import BlastRadius, ScaleInSettings
from reconciler.planner.settings import FleetSettings
from tests.builders import ago, amounts, make_fleet_settings, make_node, selecting
from tests.unit.planner.disruption.scale_in.consolidation import SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    moves,
    noted,
    on,
    told,
)

MID = make_fleet_settings("mid", cpu=8, memory="32Gi", price="0.16")
EIGHT = make_fleet_settings("eight", cpu=8, memory="32Gi", price="0.20")
COSTLY_MOVES = make_fleet_settings(
    "small", price="0.10", scale_in=ScaleInSettings(move_cost_usd=Decimal("0.004"))
)
DEPLOYMENT = Owner(kind="Deployment", name="kept", uid="")


def budget(healthy: int = 1) -> PodDisruptionBudget:
    """A budget over the pods of `kept`, which allows none of them to be disrupted."""
    return PodDisruptionBudget(
        namespace="ns",
        name="kept",
        selector=selecting(app="kept"),
        disruptions_allowed=0,
        current_healthy=healthy,
        desired_healthy=1,
    )


def pods_of_kept(count: int = 2, **changed: Any) -> list[Pod]:
    """Pods that fit on two of the other nodes, while those of no other node fit beside them."""
    cpu = f"{2400 // count}m"
    return [on("kept", f"kept-{n}", cpu, labels={"app": "kept"}, **changed) for n in range(count)]


def beside(
    pods: Iterable[Any], timer: float | None, small: FleetSettings = SMALL, **more: Any
) -> Plan:
    """The plan for three nodes that one of 8 CPU can replace, and a node `kept` beside them."""
    timers = {} if timer is None else {UNNEEDED_SINCE: timer}
    nodes = [make_node(name, small) for name in ("a", "b", "c")]
    node = make_node("kept", small, annotations=noted(timers, {}))
    placed = [on(name, cpu="2600m") for name in ("a", "b", "c")]
    return planned(*nodes, *placed, node, *pods, small=4, fleets=(small, MID), **more)


@pytest.mark.parametrize("timer", [None, 30, 3600], ids=["no timer", "it runs", "it is over"])
@pytest.mark.parametrize(
    ("pods", "more"),
    [
        (pods_of_kept(), {"budgets": (budget(),)}),
        (
            pods_of_kept(2, owner=DEPLOYMENT),
            {"blast_radius": BlastRadius(pods=1, percent=False, per_seconds=600)},
        ),
        (pods_of_kept(30), {"small": COSTLY_MOVES}),
    ],
    ids=["budget", "blast radius", "price of moves"],
)
def test_set_is_chosen_beside_a_node_that_a_limit_keeps_for_good(
    timer: float | None, pods: list[Pod], more: dict[str, Any]
) -> None:
    """One pod without disruptions allowed switched sets off in its whole sector, for ever."""
    assert raised(beside(pods, timer, **more)) == [("primary-mid", 1, "consolidation")]


@pytest.mark.parametrize("timer", [None, 30])
@pytest.mark.parametrize(("age", "sets"), [(60, 0), (600, 1)])
def test_no_set_is_chosen_beside_a_node_that_a_limit_keeps_for_minutes(
    age: float, sets: int, timer: float | None
) -> None:
    """It goes by itself when the young pod of its budget is healthy, with far fewer moves."""
    away = make_node("away", allocatable=amounts(cpu="1", memory="1Gi", pods=10))
    young = on("away", "young", "1", labels={"app": "kept"}, ready=False, created_at=ago(age))
    made = beside([*pods_of_kept(), away, young], timer, budgets=(budget(),))
    assert len(raised(made)) == sets


def half_used_and_two_full(timers: dict[str, float], **more: Any) -> Plan:
    """A large node with room for the pods of one full small node, and two such nodes beside it.

    The first of them is kept for good.
    """
    fleets = {"half": EIGHT, "kept": more.pop("small", SMALL), "other": SMALL}
    nodes = [
        make_node(
            name,
            fleet,
            annotations=noted({UNNEEDED_SINCE: timers[name]} if name in timers else {}, {}),
        )
        for name, fleet in fleets.items()
    ]
    pods = [on("half", "half-0", "4200m")]
    for name in ("kept", "other"):
        pods += [on(name, f"{name}-{n}", "1250m", labels={"app": name}) for n in range(3)]
    return planned(*nodes, *pods, small=2, fleets=(SMALL, EIGHT), **more)


@pytest.mark.parametrize("timers", [{}, {"kept": 3600}, {"kept": 3600, "half": 3600}])
def test_timer_starts_for_a_node_whose_room_one_that_is_kept_for_good_would_take(
    timers: dict[str, float],
) -> None:
    """Neither could ever leave: one was kept, and the other had no place as long as it was."""
    made = half_used_and_two_full(timers, budgets=(budget(),))
    assert raised(made) == []
    started = {name for name, _, value in annotations_set(made) if value is not None}
    assert started == {"other"}


def test_node_leaves_into_the_room_that_one_that_is_kept_for_good_would_take() -> None:
    """The node that is kept has been unneeded for longest, and would come first."""
    timers = {"kept": 7200.0, "half": 3600.0, "other": 3600.0}
    made = half_used_and_two_full(timers, budgets=(budget(),))
    assert told(made, TaintNode) == ["other"]
    assert set(moves(made).values()) == {"half"}

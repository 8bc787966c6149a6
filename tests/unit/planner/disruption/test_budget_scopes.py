"""A disruption budget holds in its scope, while it is in force, and nowhere else."""

from dataclasses import replace
from datetime import time
from typing import Any

import pytest

from reconciler.model.actions import TaintNode
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import make_fleet_settings, make_node, make_settings
from tests.unit.planner.disruption.scale_in.scene import full, kept, on, planned, told, unneeded
from tests.unit.planner.disruption.updated_fleet import RULES, made_of
from tests.unit.planner.disruption.updated_fleet import node as outdated

MANY = ScaleInSettings(non_empty_at_once_max=10)
SMALL = make_fleet_settings("small", scale_in=MANY)
LARGE = make_fleet_settings("large", scale_in=MANY)
AWAY = make_fleet_settings("small", "away", scale_in=MANY)
ONE = (DisruptionBudget(nodes=1),)


def of_sectors(settings: PlannerSettings, **budgets: Any) -> PlannerSettings:
    """The settings with these budgets of sectors."""
    sectors = (
        replace(sector, disruption_budgets=budgets.get(sector.name, ()))
        for sector in settings.sectors
    )
    return replace(settings, sectors=tuple(sectors))


def empties(*fleets: FleetSettings) -> list[Any]:
    """An empty node of each fleet whose time has come, named by its fleet."""
    return [unneeded(fleet.name, fleet) for fleet in fleets]


def test_budget_of_a_fleet_is_used_up_by_its_own_nodes_alone() -> None:
    """Two teams that each allow one node at a time would wait for each other."""
    fleets = [replace(fleet, disruption_budgets=ONE) for fleet in (SMALL, LARGE)]
    made = planned(make_settings(*fleets), *empties(*fleets))
    assert sorted(told(made, TaintNode)) == ["primary-large", "primary-small"]
    broken = make_node("broken", fleets[0], ready=False)
    made = planned(make_settings(*fleets), *empties(*fleets), broken, full("broken"))
    assert told(made, TaintNode) == ["primary-large"]
    assert kept(made)["primary-small"] == "disruption-budget"


def test_budget_of_a_sector_is_used_up_by_its_own_fleets_alone() -> None:
    """Two teams that each allow one node at a time would wait for each other."""
    settings = of_sectors(make_settings(SMALL, LARGE, AWAY), primary=ONE, away=ONE)
    made = planned(settings, *empties(SMALL, LARGE, AWAY))
    going = told(made, TaintNode)
    assert len(going) == 2
    assert "away-small" in going
    share = (DisruptionBudget(nodes=50, percent=True),)
    made = planned(
        of_sectors(make_settings(SMALL, AWAY), primary=share),
        *empties(SMALL),
        *(unneeded(name, SMALL) for name in ("b", "c")),
        *(make_node(name, AWAY) for name in ("d", "e", "f")),
        *(full(name) for name in ("d", "e", "f")),
    )
    assert len(told(made, TaintNode)) == 2


@pytest.mark.parametrize(("starts", "goes"), [(13, 1), (11, 0)])
def test_budget_holds_only_while_it_is_in_force(starts: int, goes: int) -> None:
    """A freeze in office hours would hold for good, or never. It is noon."""
    freeze = (DisruptionBudget(nodes=0, starts=time(starts), ends=time(18)),)
    made = planned(make_settings(SMALL, disruption_budgets=freeze), *empties(SMALL))
    assert len(told(made, TaintNode)) == goes


def test_batch_of_one_fleet_uses_up_no_budget_of_another() -> None:
    """A rolling update of one team would stop the scale-in of all others."""
    beside = replace(LARGE, disruption_budgets=ONE)
    old = [outdated(name, mark=number) for number, name in enumerate(("a", "b"), 1)]
    made = made_of(
        *old,
        outdated("new", 30, ready=False),
        *empties(beside),
        *(full(node.name) for node in old),
        new="new primary-large",
        beside=(beside,),
        rules=RULES,
    )
    assert told(made, TaintNode) == ["primary-large"]


def test_budget_for_another_reason_lets_the_longest_unneeded_node_go_first() -> None:
    """It would be taken for a node that no plan lets go, and stand idle behind all others."""
    drifted = DisruptionBudget(nodes=0, reasons=frozenset({"drifted"}))
    one = ScaleInSettings(non_empty_at_once_max=1)
    frozen = make_fleet_settings("small", scale_in=one, disruption_budgets=(drifted,))
    other = make_fleet_settings("large", scale_in=one)
    nodes = [unneeded("a", frozen, 7200), unneeded("b", other, 3600), make_node("c", other)]
    made = planned(make_settings(frozen, other), *nodes, on("a"), on("b"), on("c", cpu="1"))
    assert told(made, TaintNode) == ["a"]

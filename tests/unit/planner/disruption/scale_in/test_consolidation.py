"""Consolidation: fewer or smaller nodes when that saves at least 5 % (docs/scale-in.md)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import EvictPod, SetCapacity, TaintNode, begins_drain
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.consolidation import LARGE, SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    kept,
    moves,
    on,
    told,
    unneeded,
)


def test_cheaper_node_is_asked_for_before_anything_is_moved() -> None:
    """Pods would be evicted and wait for a launch."""
    made = planned(unneeded("l", LARGE), on("l", cpu="3"))
    assert raised(made) == [("primary-small", 1, "consolidation")]
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert kept(made)["l"] == "consolidation"


def test_replacement_under_way_is_waited_for_not_asked_for_again() -> None:
    """The target would climb with every cycle until the node has joined."""
    made = planned(unneeded("l", LARGE), on("l", cpu="3"), small=1)
    assert raised(made) == []
    assert told(made, TaintNode) == []
    assert annotations_set(made) == set()


def test_replacement_that_has_come_takes_the_pods_though_it_is_idle() -> None:
    """The new node would be removed as idle, and asked for again."""
    made = planned(unneeded("l", LARGE), on("l", cpu="3"), make_node("s", SMALL), small=1)
    assert told(made, TaintNode) == ["l"]
    assert moves(made) == {"on-l": "s"}
    assert raised(made) == []


@pytest.mark.parametrize(
    ("held", "goes"), [({}, []), ({"cpu": "13"}, ["s"]), ({"owner": "Job"}, ["s"])]
)
def test_idle_node_waits_for_the_more_expensive_one_whose_time_has_not_come(
    held: dict[str, str], goes: list[str]
) -> None:
    """It would be ended, and bought again minutes later to replace the more expensive node."""
    pod = on("l", **{"cpu": "3", **held})
    made = planned(unneeded("l", LARGE, 300), pod, unneeded("s", SMALL), small=1)
    assert told(made, TaintNode) == goes
    assert kept(made).get("s") == (None if goes else "consolidation")
    eligible = planned(unneeded("l", LARGE), pod, unneeded("s", SMALL), small=1)
    assert told(eligible, TaintNode) == (goes or ["l"])


@pytest.mark.parametrize(("allowed", "goes"), [(0, ["s"]), (1, [])])
def test_idle_node_waits_for_no_more_expensive_one_that_a_budget_keeps(
    allowed: int, goes: list[str]
) -> None:
    """A window without disruptions lasts for hours, and the idle node would run as long."""
    budget = DisruptionBudget(nodes=allowed, reasons=frozenset({"underutilized", "consolidation"}))
    nodes = (unneeded("l", LARGE, 300), unneeded("s", SMALL))
    made = planned(*nodes, on("l", cpu="3"), small=1, disruption_budgets=(budget,))
    assert told(made, TaintNode) == goes


@pytest.mark.parametrize(("expires", "goes"), [(3600.0, ["s"]), (None, [])])
def test_node_that_must_go_waits_for_no_more_expensive_one(
    expires: float | None, goes: list[str]
) -> None:
    """One that expired would stay for as long as the more expensive node does."""
    small = replace(SMALL, expire_after_seconds=expires)
    nodes = (unneeded("l", LARGE, 60), unneeded("s", small, created_at=ago(9000)))
    pods = (on("l", cpu="1"), on("s", cpu="1"))
    made = planned(*nodes, *pods, small=1, fleets=(small, LARGE))
    assert told(made, TaintNode) == goes


def test_idle_node_waits_for_a_more_expensive_one_though_a_spare_has_room() -> None:
    """A spare is kept idle: it takes no pods when the time of the more expensive node has come."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=7200)
    dear = replace(make_fleet_settings("dear", price="0.40"), scale_in=spares)
    nodes = [unneeded("d", dear, 300), unneeded("spare", dear), unneeded("s", SMALL)]
    made = planned(*nodes, on("d", cpu="3"), small=1, fleets=(SMALL, dear))
    assert told(made, TaintNode) == []
    assert [kept(made)[name] for name in ("s", "spare")] == ["consolidation", "type-spares"]


def test_nodes_that_go_together_share_the_idle_node() -> None:
    """The second would ask for a node of its own beside the room that is left on the first's."""
    limit = ScaleInSettings(non_empty_at_once_max=2)
    small, large = (replace(fleet, scale_in=limit) for fleet in (SMALL, LARGE))
    cordoned = [unneeded(name, large, unschedulable=True) for name in ("l", "m")]
    pods = [on("l", cpu="1500m"), on("m", cpu="1500m")]
    made = planned(*cordoned, unneeded("s", small), *pods, small=1, fleets=(small, large))
    assert told(made, TaintNode) == ["l", "m"]
    assert moves(made) == {"on-l": "s", "on-m": "s"}
    assert raised(made) == []


def test_node_is_not_emptied_while_more_expensive_ones_need_its_room_together() -> None:
    """Each of them would find room alone; the last would ask for what was just ended."""
    nodes = [unneeded("s", SMALL), make_node("t", SMALL)]
    costly = [unneeded("l", LARGE, 300), unneeded("m", LARGE, 300)]
    pods = [on("s", cpu="1"), on("t", "job", "500m", owner="Job")]
    movable = [on("l", cpu="1500m"), on("m", cpu="1500m")]
    made = planned(*nodes, *costly, *pods, *movable, small=2)
    assert told(made, TaintNode) == []
    assert kept(made)["s"] == "consolidation"
    alone = planned(*nodes, costly[0], *pods, movable[0], small=2)
    assert told(alone, TaintNode) == ["s"]


def test_idle_node_that_a_replacement_counted_on_waits_for_it() -> None:
    """It would be ended while the replacement launches, which then had to be asked for again."""
    small = replace(SMALL, min_capacity=1)
    pods = [on("l", "l-a", "3"), on("l", "l-b", "3")]
    made = planned(
        unneeded("l", LARGE), *pods, unneeded("s", small), small=2, fleets=(small, LARGE)
    )
    assert told(made, TaintNode) == []
    assert raised(made) == []
    assert [kept(made)[name] for name in ("l", "s")] == ["consolidation"] * 2


@pytest.mark.parametrize(("seconds", "goes"), [(300, []), (3600, ["l"])])
def test_node_is_not_emptied_whose_like_a_more_expensive_one_would_need(
    seconds: float, goes: list[str]
) -> None:
    """The two would change places for ever: one ends, the other asks for one just like it."""
    nodes = [unneeded("s", SMALL), make_node("t", SMALL), unneeded("l", LARGE, seconds)]
    pods = [on("s", cpu="1"), on("t", "job", "2500m", owner="Job"), on("l", cpu="2500m")]
    made = planned(*nodes, *pods, small=2)
    assert told(made, TaintNode) == goes
    assert kept(made)["s"] == ("in-use" if goes else "consolidation")
    assert told(planned(*nodes[:2], *pods[:2], small=2), TaintNode) == ["s"]


def test_node_is_not_emptied_whose_pods_would_take_the_place_of_those_of_an_expensive_one() -> None:
    """They have room in gaps, but kube-scheduler puts them on the idle node, which is missed."""
    dear = make_fleet_settings("dear", price="0.40")
    nodes = [make_node("t", SMALL), make_node("u", SMALL), unneeded("i", SMALL)]
    pods = [on("t", "t-job", "2500m", owner="Job"), on("u", "u-job", "2500m", owner="Job")]
    leaving = [unneeded("s", SMALL), on("s", "s-a", "1"), on("s", "s-b", "1")]
    costly = [unneeded("d", dear, 300), on("d", cpu="3")]
    made = planned(*nodes, *pods, *leaving, *costly, small=4, fleets=(SMALL, dear))
    assert told(made, TaintNode) == []
    assert kept(made)["s"] == "consolidation"
    assert "s" in told(planned(*nodes, *pods, *leaving, small=4), TaintNode)


def test_node_is_not_emptied_whose_pods_will_go_to_a_spare() -> None:
    """Moved to the more expensive node they would keep it; kube-scheduler takes the spare."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=7200)
    small = replace(SMALL, scale_in=spares)
    nodes = [unneeded("s", small), unneeded("spare", small), unneeded("l", LARGE, 300)]
    pods = [on("s", cpu="3"), on("l", cpu="3")]
    made = planned(*nodes, *pods, small=2, fleets=(small, LARGE))
    assert told(made, TaintNode) == []
    assert [kept(made)[name] for name in ("s", "spare")] == ["consolidation", "type-spares"]


@pytest.mark.parametrize("owner", ["ReplicaSet", "Job"])
def test_cheaper_node_is_not_emptied_onto_a_more_expensive_one_that_is_to_go(owner: str) -> None:
    """The more expensive one would be replaced by one like that which was just ended."""
    dear = make_fleet_settings("dear", price="0.40")
    costly = [unneeded("d", dear, 300), on("d", cpu="2", owner=owner)]
    made = planned(unneeded("s", SMALL), on("s", cpu="1"), *costly, small=1, fleets=(SMALL, dear))
    assert told(made, TaintNode) == (["s"] if owner == "Job" else [])
    assert kept(made).get("s") == (None if owner == "Job" else "consolidation")


DEAR = make_fleet_settings("dear", price="0.50")
SEVEN = make_fleet_settings("seven", cpu=7, memory="28Gi", price="0.20")
MISSED = (
    *(unneeded("l", SEVEN), on("l", "l-a", "3400m"), on("l", "l-b", "3400m")),
    *(unneeded("d", DEAR, 300), on("d", cpu="300m")),
)
"""The node of seven CPU would be missed: the pods that came to the dear one would need its like."""


def test_nothing_is_bought_for_a_node_that_would_stay_when_it_has_come() -> None:
    """It would be ended as idle, and bought again every few minutes."""
    made = planned(*MISSED, fleets=(SMALL, SEVEN, DEAR))
    assert raised(made) == []
    assert kept(made)["l"] == "consolidation"
    dear_stays = on("d", "job", "10m", owner="Job")
    stays = planned(*MISSED, dear_stays, fleets=(SMALL, SEVEN, DEAR))
    assert raised(stays) == [("primary-small", 1, "consolidation")]


def test_idle_node_waits_for_no_node_that_is_kept_for_a_third() -> None:
    """It would wait for ever, and keep the third, whose pods could come, from having its time."""
    made = planned(*MISSED, unneeded("s", SMALL), small=1, fleets=(SMALL, SEVEN, DEAR))
    assert told(made, TaintNode) == []
    assert {node for node, *_ in annotations_set(made)} == {"l"}
    assert "it stays to take the pods of d" in next(k.detail for k in made.kept if k.node == "s")


def test_nothing_is_replaced_unless_the_config_asks_for_it() -> None:
    """Users would see nodes change that they did not ask to be changed."""
    made = planned(unneeded("l", LARGE), on("l", cpu="3"), consolidation=False)
    assert raised(made) == []


def test_replacement_that_kube_scheduler_would_fill_otherwise_is_not_asked_for() -> None:
    """The node would come, its pods would not fit as they are spread, and it would go again."""
    made = planned(
        unneeded("l", LARGE),
        on("l", "aa", "1500m"),
        on("l", "bb", "3"),
        make_node("m", SMALL),
        on("m", "job", "2500m", owner="Job"),
        small=1,
    )
    assert raised(made) == []
    assert kept(made)["l"] == "no-destination"


@pytest.mark.parametrize(("launching", "at_once"), [(0, 2), (1, 1)])
def test_room_that_a_replacement_counts_on_is_not_given_away(launching: int, at_once: int) -> None:
    """The node would come and find that a pod of the old one has no place any more: it would go."""
    limit = ScaleInSettings(non_empty_at_once_max=at_once)
    small, large = (replace(fleet, scale_in=limit) for fleet in (SMALL, LARGE))
    made = planned(
        unneeded("l", large, 3700),
        on("l", "l-a", "3"),
        on("l", "l-b", "3"),
        unneeded("s", small, 3600),
        on("s", cpu="3"),
        make_node("f", large),
        on("f", "job", "12500m", owner="Job"),
        small=1 + launching,
        fleets=(small, large),
    )
    assert raised(made) == ([] if launching else [("primary-small", 2, "consolidation")])
    assert told(made, TaintNode) == []


def test_saving_below_five_percent_is_not_worth_the_disruption() -> None:
    """Nodes would be replaced for cents, again and again."""
    for price, asks in (("0.381", False), ("0.38", True)):
        small = make_fleet_settings("small", price=price)
        made = planned(unneeded("l", LARGE), on("l", cpu="3"), fleets=(small, LARGE))
        assert bool(raised(made)) is asks


def test_well_used_node_goes_when_its_pods_fit_on_others() -> None:
    """Two nodes at 60 % and one with room would stay as they are."""
    nodes = [unneeded("a", LARGE), make_node("b", LARGE), make_node("c", LARGE)]
    pods = [
        on("a", cpu="10"),
        on("b", "y", cpu="5"),
        on("b", "z", "10", owner="Job"),
        on("c", "x", "5", owner="Job"),
    ]
    made = planned(*nodes, *pods)
    assert told(made, TaintNode) == ["a"]
    assert {a.policy for a in made.actions if begins_drain(a)} == {"consolidation"}
    assert told(planned(*nodes, *pods, consolidation=False), TaintNode) == []


def test_pod_that_may_not_move_is_not_consolidated() -> None:
    """A running Job would be killed to save money."""
    made = planned(unneeded("l", LARGE), on("l", cpu="3", owner="Job"))
    assert raised(made) == []


def test_timer_runs_before_a_node_is_replaced() -> None:
    """A dip of some seconds would launch a node."""
    made = planned(make_node("l", LARGE), on("l", cpu="3"))
    assert raised(made) == []
    assert annotations_set(made) == {("l", "unneeded-since", "2026-01-31T12:00:00Z")}


def test_cost_limit_holds_while_both_nodes_run() -> None:
    """max_hourly_usd would be broken for as long as the move takes."""
    from decimal import Decimal  # noqa: PLC0415

    objects = (unneeded("l", LARGE), on("l", cpu="3"))
    assert raised(planned(*objects, usd_per_hour_max=Decimal("0.45"))) == []
    assert raised(planned(*objects, usd_per_hour_max=Decimal("0.50")))


def test_fleet_at_its_maximum_is_not_asked() -> None:
    """max_capacity would be exceeded."""
    small = replace(SMALL, max_capacity=0)
    assert raised(planned(unneeded("l", LARGE), on("l", cpu="3"), fleets=(small, LARGE))) == []


def test_replacement_is_asked_for_in_the_region_of_the_node() -> None:
    """Fleets of equal price: the alphabet would choose a region that nobody prefers."""
    regions = (HOME, AWAY)
    small, large = (replace(fleet, regions=regions) for fleet in (SMALL, LARGE))
    lives = [
        make_fleet(fleet, int(fleet is large and region == HOME), region=region)
        for fleet in (small, large)
        for region in regions
    ]
    node = unneeded("l", large)
    cloud = make_cloud(*lives, instances=[make_instance(node, lives[2])])
    settings = make_settings(small, large, regions=regions, consolidation=True)
    made = plan(make_snapshot(node, on("l", cpu="3"), cloud=cloud), settings)
    assert [(a.region, a.to_capacity) for a in made.actions if isinstance(a, SetCapacity)] == [
        (HOME, 1)
    ]


def test_node_that_costs_nothing_is_not_replaced() -> None:
    """Nothing is 5 % less than nothing."""
    free, other = (make_fleet_settings(size, price="0") for size in ("free", "small"))
    made = planned(unneeded("l", free), on("l", cpu="3"), fleets=(other, free))
    assert raised(made) == []


def test_idle_node_of_a_fleet_that_has_to_get_rid_of_nodes_is_no_place() -> None:
    """The fleet would be filled anew, and never leave."""
    departing = replace(SMALL, max_capacity=0)
    nodes = [unneeded("l", LARGE), on("l", cpu="3"), unneeded("s", SMALL)]
    made = planned(*nodes, small=1, fleets=(departing, LARGE))
    assert told(made, TaintNode) == ["s"]


def test_replacement_is_asked_for_in_the_sectors_of_the_pods() -> None:
    """Pods of one team would move into another team's sector for good."""
    other = make_fleet_settings("tiny", "other", price="0.05")
    objects = (unneeded("l", LARGE), on("l", cpu="3"))
    assert raised(planned(*objects, fleets=(other, LARGE), default_sector="primary")) == []
    both = planned(*objects, fleets=(SMALL, other, LARGE), default_sector="primary")
    assert raised(both) == [("primary-small", 1, "consolidation")]


def kept_for_its_price(**changed: Any) -> bool:
    """Whether a node whose pod fits on a foreign one stays: a costly one might want its like."""
    small = replace(SMALL, **changed)
    foreign = make_node("f", labels={"sector": "primary"})
    pods = [on("s"), on("l", cpu="3600m"), on("f", cpu="3400m", owner="Job")]
    nodes = [unneeded("s", small), unneeded("l", LARGE), foreign]
    made = planned(*nodes, *pods, small=1, fleets=(small, LARGE))
    return "s" not in told(made, TaintNode)


def test_no_node_is_kept_for_a_purchase_that_may_not_be_made() -> None:
    """Both nodes would stay for ever, where without consolidation one of them goes."""
    assert kept_for_its_price()
    assert not kept_for_its_price(max_capacity=1)

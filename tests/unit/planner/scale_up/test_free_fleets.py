"""Fleets whose nodes cost nothing: reserved or dedicated capacity that is paid for otherwise."""

from decimal import Decimal
from typing import Any, get_args

import pytest

from reconciler.model.actions import EvictPod, TaintNode
from reconciler.model.ids import PodKey
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import Expander, FleetSettings
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    spread,
)
from tests.properties.optimum import dozen
from tests.properties.reached import asked_for
from tests.unit.planner.disruption.scale_in.scene import (
    full,
    kept,
    make_scene_fleet,
    on,
    planned,
    told,
    unneeded,
)
from tests.unit.planner.placed import bought, raises

SMALL = make_fleet_settings("small", cpu=4, price="0")
LARGE = make_fleet_settings("large", cpu=16, memory="64Gi", price="0")
PAID = make_fleet_settings("paid", cpu=4, price="0.10")


def priced(fleet: FleetSettings, cents: str) -> FleetSettings:
    """The same fleet at another price."""
    return make_fleet_settings(
        fleet.size,
        cpu=fleet.options[0].resources["cpu"] // 1000,
        memory=fleet.options[0].resources["memory"],
        price=cents,
    )


@pytest.mark.parametrize("price", ["0", "0.0000000001"])
@pytest.mark.parametrize("expander", get_args(Expander))
def test_pods_share_free_nodes(price: str, expander: Expander) -> None:
    """Each of 30 small pods got a node of its own."""
    fleet = make_fleet_settings(cpu=4, price=price)
    made = plan(
        make_snapshot(*make_pods(30, cpu="50m", memory="10Mi")),
        make_settings(fleet, sectors={"primary": {"expander": expander}}),
    )
    assert raises(made) == {("primary-small", "us-west-2"): 1}
    assert made.cost.hourly_usd_after == made.cost.gap == 0


def test_small_free_nodes_are_bought_for_few_pods() -> None:
    """A pod of a tenth of a CPU got 16 CPUs, which others could have used."""
    made = plan(make_snapshot(make_pod("p", cpu="100m")), make_settings(LARGE, SMALL))
    assert raises(made) == {("primary-small", "us-west-2"): 1}


@pytest.mark.parametrize("count", [3, 40, 600])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"pod_affinity": (near(HOSTNAME, app="g"),)},
        {"pod_anti_affinity": (near(HOSTNAME, app="g"),)},
        {"topology_spread": (spread(ZONE, app="g"),)},
    ],
    ids=["none", "together", "apart", "zones"],
)
def test_free_fleets_get_as_many_nodes_as_equally_priced_ones(
    count: int, rules: dict[str, Any]
) -> None:
    """Searches that compare nothing but money took the first packing that they found."""
    count = min(count, 30) if "pod_affinity" in rules else count
    pods = make_pods(count, cpu="100m", memory="100Mi", labels={"app": "g"}, **rules)
    free = plan(make_snapshot(*pods), make_settings(SMALL, LARGE))
    paid = plan(make_snapshot(*pods), make_settings(priced(SMALL, "0.212"), priced(LARGE, "0.848")))
    assert raises(free) == raises(paid)


def test_different_pods_share_free_nodes() -> None:
    """The search for many kinds of pods compares the prices of patterns of a node."""
    pods = [make_pod(f"p{n}", cpu=f"{100 + 7 * n}m", memory=f"{50 + n}Mi") for n in range(60)]
    made = plan(make_snapshot(*pods), make_settings(SMALL))
    total = sum(100 + 7 * n for n in range(60))
    assert bought(made) == -(-total // 4000)


def test_free_nodes_are_bought_before_others_as_far_as_limits_allow() -> None:
    """What is paid for already is used first; the rest of the pods gets other nodes."""
    few = make_fleet_settings("few", cpu=4, price="0", max_capacity=2)
    made = plan(make_snapshot(*make_pods(12, cpu=1, memory="1Gi")), make_settings(few, PAID))
    assert raises(made) == {("primary-few", "us-west-2"): 2, ("primary-paid", "us-west-2"): 1}
    assert made.cost.hourly_usd_after == pytest.approx(0.10)
    assert made.cost.gap == 0


@pytest.mark.parametrize("seed", range(12))
def test_bound_beside_free_nodes_is_close_and_never_above_the_true_optimum(seed: int) -> None:
    """Free nodes are compared by a price that they do not have: nothing is proven with it as is."""
    pods, fleets = dozen(seed)
    few = make_fleet_settings("few", cpu=4, price="0", max_capacity=1 + seed % 3)
    made = plan(make_snapshot(*pods), make_settings(few, *fleets))
    bought_alone = plan(
        make_snapshot(*(p for p in pods if p.key in _elsewhere(made))), make_settings(*fleets)
    )
    assert made.cost.hourly_usd_after <= bought_alone.cost.hourly_usd_after + 1e-6
    assert made.cost.hourly_usd_lower_bound <= made.cost.hourly_usd_after
    assert made.cost.gap < 1e-5


def _elsewhere(made: Plan) -> set[PodKey]:
    """The pods that do not go to free nodes."""
    return {p.pod for p in made.placements if p.fleet != "primary-few"}


def test_free_nodes_are_bought_at_a_limit_of_money() -> None:
    """They cost nothing, so a limit that is reached must not hold them back."""
    paid = make_fleet_settings("paid", cpu=4, price="0.10", min_capacity=1)
    pods = make_pods(20, cpu=1, memory="1Gi")
    made = plan(make_snapshot(*pods), make_settings(SMALL, paid, usd_per_hour_max=Decimal("0.10")))
    assert raises(made)["primary-small", "us-west-2"] == 4
    assert made.unplaceable == ()


@pytest.mark.parametrize("limit", ["0.10", "0.05"])
def test_free_node_replaces_a_paid_one_at_a_limit_of_money_and_beyond(limit: str) -> None:
    """A cluster beyond its limit would never come below it."""
    node = make_node("n", PAID)
    cloud = make_cloud_of([node], make_fleet(PAID, 1), make_fleet(SMALL, 0))
    settings = make_settings(SMALL, PAID, consolidation=True, usd_per_hour_max=Decimal(limit))
    made = plan(make_snapshot(node, on("n", cpu="3"), cloud=cloud), settings)
    assert kept(made) == {"n": "unneeded-time"}


@pytest.mark.parametrize("fleets", [(SMALL,), (SMALL, LARGE), (SMALL, PAID)])
def test_purchase_of_free_nodes_is_not_repeated_while_they_launch(
    fleets: tuple[FleetSettings, ...],
) -> None:
    """Launching nodes counted as more expensive than new ones, which cost nothing."""
    pods = [
        make_pod(f"p{n}", cpu=f"{700 + 130 * (n % 9)}m", memory=f"{500 + n}Mi") for n in range(40)
    ]
    settings = make_settings(*fleets)
    before = make_snapshot(*pods, cloud=make_cloud(*(make_fleet(fleet, 0) for fleet in fleets)))
    made = plan(before, settings)
    launched = asked_for(before, made)
    assert bought(plan(launched, settings)) == 0
    more = make_snapshot(*pods, make_pod("late", cpu="3900m", memory="1Gi"), cloud=launched.cloud)
    assert bought(plan(more, settings)) <= 1


def test_pods_of_several_purchases_share_free_nodes() -> None:
    """Pods that were bought for later got nodes of their own beside those that had room."""
    lead = make_pod("lead", cpu="100m", labels={"app": "lead"})
    follow = make_pods(3, "f", cpu="100m", pod_affinity=(near(HOSTNAME, app="lead"),))
    made = plan(make_snapshot(lead, *follow), make_settings(SMALL))
    assert bought(made) == 1
    assert made.unplaceable == ()


def test_empty_free_node_is_ended() -> None:
    """Nobody would ever free capacity that is reserved, and needed elsewhere."""
    fleet = make_scene_fleet(price="0")
    made = planned(fleet, unneeded("n1", fleet), full("n2"), make_node("n2", fleet))
    assert told(made, TaintNode) == ["n1"]


@pytest.mark.parametrize(("move_cost_usd", "going"), [("0.0005", []), ("0", ["on-n1"])])
def test_under_used_free_node_is_emptied_only_if_moves_cost_nothing(
    move_cost_usd: str, going: list[str]
) -> None:
    """By the config the move costs money and the end of the node saves none."""
    fleet = make_scene_fleet(price="0", move_cost_usd=Decimal(move_cost_usd))
    made = planned(fleet, unneeded("n1", fleet), on("n1"), full("n2"), make_node("n2", fleet))
    assert told(made, EvictPod) == going
    if not going:
        assert kept(made)["n1"] == "move-cost"

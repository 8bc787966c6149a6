"""Zones of pods that others' anti-affinity keeps out of some."""

from typing import Any

import pytest

from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
PRIMARY: dict[str, Any] = {"labels": {"app": "primary"}}


def fleets(*most: int | None, cpu: int = 8, **changed: Any) -> list[Any]:
    """One fleet in each zone, with at most so many nodes."""
    return [
        make_fleet_settings(
            zone, cpu=cpu, memory="64Gi", zone=zone, max_capacity=n, price="0.30",
            over_subscription=0.0, **changed,
        )
        for zone, n in zip(ZONES, most, strict=False)
    ]  # fmt: skip


def bought(made: Plan) -> list[int]:
    """The target of each zone's fleet."""
    return [fleet.target for fleet in sorted(made.fleets, key=lambda f: f.fleet)]


def kept_out_of(fleet: Any) -> list[Any]:
    """A full node with a pod that keeps pods of `web` out of its zone."""
    apart = make_pod("apart", node="n", cpu="7500m", pod_anti_affinity=(near(ZONE, app="web"),))
    return [make_node("n", fleet), apart]


def test_pods_kept_out_of_a_zone_use_all_others() -> None:
    """All were meant for one zone: a pod of lower priority got the node that one of them needed."""
    three = fleets(1, 2, 3)
    web = make_pods(3, "web", cpu=5, priority=1000, labels={"app": "web"})
    low = make_pod("low", cpu="7900m", priority=100)
    made = plan(make_snapshot(*kept_out_of(three[2]), *web, low), make_settings(*three))
    assert made.unplaceable == ()
    assert bought(made) == [1, 2, 2]


def test_pods_kept_out_of_a_zone_share_nodes_with_pods_of_several() -> None:
    """All were meant for one zone: a node more was bought."""
    three = fleets(None, None, None)
    web = make_pods(2, "web", cpu=4, labels={"app": "web"})
    others = [make_pod(f"other-{zone}", cpu=3, node_selector={ZONE: zone}) for zone in ZONES[:2]]
    made = plan(make_snapshot(*kept_out_of(three[2]), *web, *others), make_settings(*three))
    assert made.unplaceable == ()
    assert bought(made) == [1, 1, 1]


def test_pod_that_fits_nowhere_keeps_nobody_apart() -> None:
    """Its anti-affinity tied the others to one zone, at twice the price."""
    two = fleets(None, None, cpu=16)
    web = make_pods(3, "web", cpu=3, labels={"app": "web"})
    other = make_pod("other", cpu=1, node_selector={ZONE: ZONES[1]})
    bad = make_pod("bad", cpu=99, pod_anti_affinity=(near(ZONE, app="web"),))
    made = plan(make_snapshot(*web, other, bad), make_settings(*two))
    assert [unplaceable.pod.name for unplaceable in made.unplaceable] == ["bad"]
    assert bought(made) == [0, 1]


def standby(count: int, cpu: str = "3") -> tuple[Any, ...]:
    """Pods that must be in no zone with a primary."""
    apart = (near(ZONE, app="primary"),)
    return make_pods(count, "standby", cpu=cpu, pod_anti_affinity=apart)


@pytest.mark.parametrize(
    "changed",
    [
        {"cpu": "3"},
        {"cpu": "1", "priority": 100},
        {"cpu": "3", "pod_anti_affinity": (near(HOSTNAME, app="primary"),)},
    ],
)
def test_zone_that_others_need_free_is_left_to_them(changed: dict[str, Any]) -> None:
    """A primary runs in one zone; the next one was bought in the only one left to the standbys."""
    two = fleets(None, None, cpu=4)
    there: list[Any] = [
        make_node("n", two[1]),
        make_pod("first", node="n", cpu="3800m", **PRIMARY),
    ]
    pods = [make_pod("next", **PRIMARY, **changed), *standby(2)]
    made = plan(make_snapshot(*there, *pods), make_settings(*two))
    assert made.unplaceable == ()
    assert bought(made) == [2, 2]


def test_standbys_keep_a_zone_though_it_is_the_cheapest() -> None:
    """A more expensive zone is no loss where the cheapest is the only one that others may have."""
    cheap, dear = fleets(None, None, cpu=4)
    dear = make_fleet_settings(
        ZONES[1], cpu=4, memory="64Gi", zone=ZONES[1], price="0.35", over_subscription=0.0
    )
    there: list[Any] = [make_node("n", dear), make_pod("first", node="n", cpu="3800m", **PRIMARY)]
    pods = [make_pod("next", cpu="3", **PRIMARY), *standby(2)]
    made = plan(make_snapshot(*there, *pods), make_settings(cheap, dear))
    assert made.unplaceable == ()

"""Pods that compete: for one claim, and for one sum of money across sectors."""

from decimal import Decimal

from reconciler.model.cluster import PersistentVolume, PersistentVolumeClaim
from reconciler.planner.planner import plan
from tests.builders import (
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    requiring,
)


def test_claim_for_one_pod_only_serves_the_first_of_two_waiting() -> None:
    """Two pods cannot both mount a ReadWriteOncePod claim: capacity for the second is wasted."""
    claim = PersistentVolumeClaim(
        namespace="ns", name="data", volume_name="pv", access_modes=("ReadWriteOncePod",)
    )
    pods = [make_pod(name, namespace="ns", claims=("data",)) for name in ("p0", "p1")]
    made = plan(
        make_snapshot(
            *pods,
            make_node("n1"),
            claims=(claim,),
            volumes=(PersistentVolume(name="pv"),),
        ),
        make_settings(make_fleet_settings()),
    )
    assert [p.pod.name for p in made.placements] == ["p0"]
    assert [u.pod.name for u in made.unplaceable] == ["p1"]
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"volume-in-use"}


def test_limit_of_the_other_sector_holds_for_pods_that_name_both() -> None:
    """A sector's budget must hold whichever of its sectors a pod names first."""
    fleets = (
        make_fleet_settings(sector="a", max_capacity=0),
        make_fleet_settings(sector="b", price="0.10"),
    )
    settings = make_settings(*fleets, sectors={"b": {"usd_per_hour_max": Decimal("0.10")}})
    both = requiring("sector", "In", "a", "b")
    pods = [make_pod(name, cpu=3, node_affinity=both) for name in ("p0", "p1")]
    made = plan(make_snapshot(*pods), settings)
    assert {f.fleet: f.target for f in made.fleets} == {"a-small": 0, "b-small": 1}
    assert made.cost.hourly_usd_after <= 0.10


def test_cluster_limit_goes_to_the_higher_priority_of_another_sector() -> None:
    """Money that is short must not go to whoever's sector comes first in the file."""
    settings = make_settings(
        make_fleet_settings(sector="a", price="0.10"),
        make_fleet_settings(sector="b", price="0.10"),
        usd_per_hour_max=Decimal("0.20"),
    )
    pods = [
        make_pod("first", cpu=1, priority=200, node_selector={"sector": "a"}),
        make_pod("last", cpu=4, priority=0, node_selector={"sector": "a"}),
        make_pod("second", cpu=4, priority=100, node_selector={"sector": "b"}),
    ]
    made = plan(make_snapshot(*pods), settings)
    assert sorted(p.pod.name for p in made.placements) == ["first", "second"]
    assert [u.pod.name for u in made.unplaceable] == ["last"]

"""Fleets, groups and nodes joined: who belongs to whom."""

from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState, ClusterState, Ignored, Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import Discovery
from tests.builders import (
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_settings,
    make_snapshot,
)

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOME = Region("us-west-2")


def make_group(name: str, size: int, min_size: int | None = None) -> Fleet:
    """An Auto Scaling group as EC2 shows it."""
    return Fleet(
        id=FleetId(name),
        name=name,
        provider="asg",
        region=HOME,
        state="active",
        target_capacity=size,
        min_size=min_size,
    )


def test_group_that_the_config_names_is_the_fleet_of_that_name() -> None:
    """An Auto Scaling group has no fleet tag: unless matched by name it would seem missing."""
    fleet = make_fleet_settings(
        name="primary-small", provider="asg", auto_scaling_group="eks-workers", min_capacity=1
    )
    group = make_group("eks-workers", 3)
    snapshot = Snapshot(
        at=AT,
        cluster=ClusterState(),
        cloud=CloudState(fleets=(group,), regions=frozenset({HOME})),
    )
    made = plan(snapshot, make_settings(fleet))
    assert [(f.fleet, f.state, f.current) for f in made.fleets] == [("primary-small", "active", 3)]


def test_fleet_of_the_name_that_a_group_took_over_is_none_of_the_configs() -> None:
    """The group's size would be set on the EC2 Fleet that it replaced."""
    settings = make_settings(
        make_fleet_settings(name="primary-small", provider="asg", auto_scaling_group="workers")
    )
    old = Fleet(
        id=FleetId("fleet-1"),
        name="primary-small",
        provider="ec2-fleet",
        region=HOME,
        state="active",
        target_capacity=3,
    )
    group = replace(old, id=FleetId("workers"), name="workers", provider="asg", target_capacity=1)
    for fleets in ((old, group), (group, old)):
        cloud = CloudState(fleets=fleets, regions=frozenset({HOME}))
        made = plan(Snapshot(at=AT, cluster=ClusterState(), cloud=cloud), settings)
        assert [(f.fleet, f.current) for f in made.fleets] == [("primary-small", 1)]
    alone = CloudState(fleets=(old,), regions=frozenset({HOME}))
    made = plan(Snapshot(at=AT, cluster=ClusterState(), cloud=alone), settings)
    assert [f.state for f in made.fleets] == ["missing"]


def test_group_whose_name_an_ec2_fleet_took_over_is_none_of_the_configs() -> None:
    """It is the older one of the name: the fleet was bound to it, and nothing could be bought."""
    settings = make_settings(make_fleet_settings())
    group = replace(make_group("workers", 3), name="primary-small", created_at=ago(9000))
    fleet = make_fleet(make_fleet_settings(), 1, id=FleetId("fleet-1"), created_at=ago(60))
    made = plan(make_snapshot(cloud=make_cloud(group, fleet)), settings)
    assert [(f.fleet, f.current) for f in made.fleets] == [("primary-small", 1)]
    alone = plan(make_snapshot(cloud=make_cloud(group)), settings)
    assert [f.state for f in alone.fleets] == ["missing"]


def test_group_is_never_planned_below_its_own_minimum() -> None:
    """Auto Scaling refuses such a termination, and the node would stay drained for nothing."""
    fleet = make_fleet_settings(name="primary-small", provider="asg", auto_scaling_group="workers")
    group = make_group("workers", 1, min_size=1)
    node = make_node("n", fleet, annotations=FrozenMap({UNNEEDED_SINCE: "2026-01-31T10:00:00Z"}))
    snapshot = make_snapshot(node, cloud=CloudState(fleets=(group,), regions=frozenset({HOME})))
    made = plan(snapshot, make_settings(fleet))
    assert [(f.min, f.joined) for f in made.fleets] == [(1, 1)]
    assert made.actions == ()


def test_target_of_a_group_above_its_maximum_is_not_taken_back() -> None:
    """The group would end instances of its own choice; those that come go when they are idle."""
    fleet = make_fleet_settings(
        name="primary-small", provider="asg", auto_scaling_group="workers", max_capacity=1
    )
    group = make_group("workers", 3, min_size=2)
    cloud = CloudState(fleets=(group,), regions=frozenset({HOME}))
    made = plan(make_snapshot(cloud=cloud), make_settings(fleet))
    assert [(f.current, f.target) for f in made.fleets] == [(3, 3)]
    assert made.actions == ()


def test_second_fleet_of_a_name_is_left_out_and_reported() -> None:
    """Its instances run and cost, and nothing would say why they are not used."""
    settings = make_fleet_settings()
    first = make_fleet(settings, 1, id=FleetId("fleet-a"), created_at=ago(60))
    older = make_fleet(settings, 2, id=FleetId("fleet-b"), created_at=ago(3600))
    made = plan(make_snapshot(cloud=make_cloud(first, older)), make_settings(settings))
    assert [(fleet.fleet, fleet.current) for fleet in made.fleets] == [("primary-small", 2)]
    assert made.ignored == (Ignored(code="same-name", kind="Fleet", name="fleet-a"),)


def discovered(*groups: tuple[str, str, bool]) -> set[str]:
    """The names of groups that are found by their tags: own name, `fleet` tag, if ours."""
    tags = ({"fleet": tag, **({"cluster": "c"} if ours else {})} for _, tag, ours in groups)
    lives = (
        replace(make_group(own, 0), name=tag, tags=FrozenMap(tagged))
        for (own, tag, _), tagged in zip(groups, tags, strict=True)
    )
    settings = make_settings(discovery=Discovery(types={}))
    return {f.fleet for f in plan(make_snapshot(cloud=make_cloud(*lives)), settings).fleets}


def test_discovered_group_has_the_name_of_its_tag_where_that_tells_them_apart() -> None:
    """A tag that somebody else uses made many groups one, and only one of them was asked."""
    assert discovered(("a", "web", True), ("b", "batch", True)) == {"web", "batch"}
    assert discovered(("a", "prod", False), ("b", "prod", False)) == {"a", "b"}
    assert discovered(("a", "prod", True), ("b", "prod", True)) == {"a", "b"}
    assert discovered(("a", "prod", False), ("prod", "x", False)) == {"a", "prod"}

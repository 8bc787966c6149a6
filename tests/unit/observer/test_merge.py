"""Answers of several clouds as one snapshot."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from typing_extensions import override

from reconciler.adapters.memory import FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.model.errors import Forbidden, Throttled
from reconciler.model.fleet import Instance, Provider
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState, Ignored
from reconciler.observer.merge import merged_clouds
from reconciler.observer.observe import observe
from tests.builders import HOME, NOW, make_cloud, make_fleet, make_fleet_settings

AWAY = Region("us-east-1")
SMALL, LARGE = (make_fleet(make_fleet_settings(size)) for size in ("small", "large"))


def instance(number: str, fleet_id: FleetId | None = SMALL.id) -> Instance:
    """A running instance in the home region."""
    return Instance(
        id=InstanceId(number),
        region=HOME,
        fleet_id=fleet_id,
        state="running",
        instance_type="r5.xlarge",
        zone="us-west-2a",
        launched_at=NOW,
    )


def test_one_answer_is_kept_as_it_is() -> None:
    """Sorting or counting anything differently would change every plan of today."""
    state = make_cloud(SMALL, instances=[instance("i-1")])
    assert merged_clouds([state]) is state
    assert merged_clouds([]) is None


def test_fleets_and_instances_of_all_are_shown_once() -> None:
    """Two providers that both list all instances would double a fleet's nodes."""
    first = make_cloud(SMALL, instances=[instance("i-1"), instance("i-2", fleet_id=None)])
    second = make_cloud(LARGE, SMALL, instances=[instance("i-2", fleet_id=LARGE.id)])
    merged = merged_clouds([first, second])
    assert merged is not None
    assert [fleet.name for fleet in merged.fleets] == ["primary-large", "primary-small"]
    assert [(each.id, each.fleet_id) for each in merged.instances] == [
        ("i-1", SMALL.id),
        ("i-2", LARGE.id),
    ]
    assert merged == merged_clouds([second, first])


def test_region_that_is_silent_for_one_is_silent_as_a_whole() -> None:
    """The fleets that one provider did not show would look deleted, and their nodes orphaned."""
    away = replace(LARGE, region=AWAY, id=FleetId("fleet-away"))
    whole = make_cloud(SMALL, away, instances=[replace(instance("i-1"), region=AWAY)])
    half = CloudState(regions=frozenset({HOME}), silent=frozenset({AWAY}), instances_known=True)
    merged = merged_clouds([whole, half])
    assert merged is not None
    assert (merged.regions, merged.silent) == (frozenset({HOME}), frozenset({AWAY}))
    assert merged.fleets == (SMALL,)
    assert merged.instances == ()


def test_instances_are_known_only_when_all_know_them() -> None:
    """Instances of the other provider would be taken for gone, and their nodes deleted."""
    known, unknown = make_cloud(SMALL), make_cloud(LARGE, instances_known=False)
    merged = merged_clouds([known, unknown])
    assert merged is not None
    assert not merged.instances_known


def test_instances_are_asked_for_when_one_cloud_was_asked() -> None:
    """What EC2 does not show would count as merely left out of a file."""
    asked, read = make_cloud(SMALL, instances_asked=True), make_cloud(LARGE)
    merged = merged_clouds([asked, read])
    assert merged is not None
    assert merged.instances_asked


def test_fleets_that_any_of_them_shows_are_there() -> None:
    """What such a fleet launched would look left behind, and be ended."""
    merged = merged_clouds(
        [make_cloud(SMALL, other_fleets=frozenset({FleetId("x")})), make_cloud()]
    )
    assert merged is not None
    assert merged.other_fleets == {"x"}


def test_objections_and_the_earliest_clock_are_kept() -> None:
    """A clock that is off would not be found, and an unreadable fleet not be reported."""
    told = Ignored(code="unreadable", kind="Fleet", name="x")
    first = make_cloud(ignored=(told,), server_time=NOW)
    second = make_cloud(ignored=(told,), server_time=NOW - timedelta(seconds=9))
    merged = merged_clouds([first, second])
    assert merged is not None
    assert merged.ignored == (told,)
    assert merged.server_time == NOW - timedelta(seconds=9)


def _worlds() -> tuple[MemoryWorld, MemoryCluster, list[MemoryCloud]]:
    worlds = [MemoryWorld(cluster="c"), MemoryWorld(cluster="c")]
    for name, world in zip(("small", "small", "large"), (*worlds, worlds[1]), strict=True):
        world.add_fleet(FleetShape(name=f"primary-{name}", region=HOME))
    return (
        worlds[1],
        MemoryCluster(worlds[0]),
        [MemoryCloud(memory_world) for memory_world in worlds],
    )


def test_snapshot_shows_the_fleets_of_all_clouds() -> None:
    """The fleets of a second provider would be reported missing."""
    world, cluster, clouds = _worlds()
    found = observe(cluster, clouds, [HOME], world.clock)
    assert found.cloud is not None
    assert [fleet.name for fleet in found.cloud.fleets] == ["primary-large", "primary-small"]


def test_snapshot_without_one_cloud_decides_nothing_about_its_regions() -> None:
    """One provider that is away would stop every cycle, or its fleets would look deleted."""
    world, cluster, clouds = _worlds()
    world.fail_next("observe_cloud", Throttled("ec2", "slow down"))
    found = observe(cluster, clouds, [HOME], world.clock)
    assert found.cloud is not None
    assert (found.cloud.regions, found.cloud.silent) == (frozenset(), frozenset({HOME}))
    assert [each.name for each in found.cloud.ignored] == [HOME]


def test_silent_provider_leaves_the_fleets_of_the_other_one() -> None:
    """A missing right to Auto Scaling would stop every EC2 Fleet too."""
    world = MemoryWorld(cluster="c")
    world.add_fleet(FleetShape(name="primary-small", region=HOME))
    clouds = [_Denied(world, "asg"), MemoryCloud(world, "ec2-fleet")]
    found = observe(MemoryCluster(world), clouds, [HOME], world.clock)
    assert found.cloud is not None
    assert [fleet.name for fleet in found.cloud.fleets] == ["primary-small"]
    assert (found.cloud.regions, found.cloud.silent) == (frozenset(), frozenset({HOME}))
    assert found.cloud.is_silent("asg", HOME)
    assert not found.cloud.is_silent("ec2-fleet", HOME)
    assert [each.detail for each in found.cloud.ignored] == ["Forbidden: groups: is not allowed"]


class _Denied(MemoryCloud):
    """A provider without the rights to ask it."""

    @override
    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Refuse."""
        raise Forbidden("groups", "is not allowed")


class _Slow(MemoryCloud):
    """A provider whose answer takes long; EC2's clock and ours are the same."""

    def __init__(self, world: MemoryWorld, provider: Provider, seconds: float) -> None:
        super().__init__(world, provider)
        self._slow_world = world
        self._seconds = seconds

    @override
    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Answer late."""
        self._slow_world.advance(self._seconds)
        return replace(super().observe(regions), server_time=self._slow_world.clock.now())


def test_provider_that_answers_late_makes_no_clock_wrong() -> None:
    """Auto Scaling took two minutes for all pages: the alert said that our clock was wrong."""
    world = MemoryWorld(cluster="c")
    clouds = [_Slow(world, "ec2-fleet", 1), _Slow(world, "asg", 130)]
    found = observe(MemoryCluster(world), clouds, [HOME], world.clock)
    assert found.cloud is not None
    assert found.cloud.server_time == found.at


def test_instance_whose_fleet_a_silent_provider_may_have_is_left_out() -> None:
    """A group's node would look foreign or orphaned while Auto Scaling is silent."""
    member, stray = instance("i-1"), instance("i-2", fleet_id=None)
    of_a_group = instance("i-3", fleet_id=FleetId("a-group"))
    fleets = replace(
        make_cloud(SMALL, instances=[member, stray, of_a_group]),
        providers=frozenset({"ec2-fleet"}),
    )
    merged = merged_clouds([fleets, CloudState(silent=frozenset({HOME}))])
    assert merged is not None
    assert (merged.fleets, merged.instances) == ((SMALL,), (member,))
    assert HOME in merged.silent


def test_provider_that_is_silent_in_one_region_answers_in_the_other() -> None:
    """Each pair of provider and region is on its own."""
    away = replace(LARGE, region=AWAY, id=FleetId("fleet-away"))
    first = replace(make_cloud(SMALL, away), providers=frozenset({"ec2-fleet"}))
    second = CloudState(
        regions=frozenset({HOME}), silent=frozenset({AWAY}), providers=frozenset({"asg"})
    )
    merged = merged_clouds([first, second])
    assert merged is not None
    assert merged.fleets == (away, SMALL)
    assert merged.answered_in_part == {("ec2-fleet", AWAY)}


def test_snapshot_needs_one_cloud_that_answers() -> None:
    """An empty answer would look like an account without fleets."""
    world, cluster, clouds = _worlds()
    world.fail_next("observe_cloud", Throttled("ec2", "slow down"))
    with pytest.raises(Throttled):
        observe(cluster, clouds[1:], [HOME], world.clock)

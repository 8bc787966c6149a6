"""Auto Scaling groups in a simulation: sizes, regions, snapshots of moments, models of others."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from reconciler.model.cluster import Owner
from reconciler.model.demand import DemandLine, FaultDemand, PodDemand
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.settings import PlannerSettings
from reconciler.records.aws import decode_cloud
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.moments import snapshot_files
from reconciler.simulation.peers.models import peer_of, played
from reconciler.simulation.simulation import Options, Result, Simulation
from tests.builders import idle, make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
REGIONS = ("us-west-2", "us-east-1")
CALM = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
OPTIONS = Options(days=0.1, chances=CALM)
GROUP: dict[str, Any] = {
    "provider": "asg",
    "auto_scaling_group": "eks/workers",
    "scale_in": idle(300),
    "spot": False,
}


def settings(**changed: Any) -> PlannerSettings:
    """A config with one group of 4 CPUs a node."""
    group = make_fleet_settings(**{**GROUP, **changed})
    return make_settings(group, regions=group.regions, search_budget_seconds=0.0)


def jobs(count: int = 6) -> list[PodDemand]:
    """Jobs of ten minutes that need a node each."""
    return [
        PodDemand(at=AT + timedelta(seconds=n), id=f"job-{n}", spec=make_spec("3", "2Gi"),
                  ran_seconds=600, controller=Owner(kind="Job", name=f"job-{n}"))
        for n in range(count)
    ]  # fmt: skip


def simulated(lines: Iterable[DemandLine], config: PlannerSettings) -> Result:
    """The lines under the config."""
    return Simulation(folded(lines), config, OPTIONS).run()


@pytest.mark.parametrize("managed", [True, False])
def test_group_grows_for_pods_and_shrinks_after_them(managed: bool) -> None:
    """A team with Auto Scaling groups could not ask what a config would cost them."""
    result = simulated(jobs(), settings(managed=managed))
    targets = [target for _, target in result.targets["primary-small"]]
    assert (max(targets), targets[-1]) == (6, 0)
    assert result.history.waiting == 0
    assert [launch.fleet for launch in result.launches] == ["primary-small"] * 6
    assert all(launch.end < result.seconds for launch in result.launches)


def test_groups_of_one_name_in_two_regions_are_two_groups() -> None:
    """Nodes that the second region's group launched were counted in the first one's."""
    config = settings(regions=REGIONS, max_capacity=4)
    shortage = FaultDemand(at=AT, fault="capacity", fleet="primary-small", zone="us-west-2a")
    others = [FaultDemand(at=AT, fault="capacity", zone=f"us-west-2{zone}") for zone in "bc"]
    simulation = Simulation(folded([shortage, *others, *jobs(3)]), config, OPTIONS)
    seen: list[CloudState] = []
    simulation.process.plan_hooks.append(  # type: ignore[attr-defined] # the loop's own program
        lambda snapshot, _: seen.append(snapshot.cloud)
    )
    result = simulation.run()
    assert len(result.launches) == 3
    names = {(fleet.region, fleet.id) for fleet in seen[-1].fleets}
    assert names == {(region, "eks/workers") for region in REGIONS}
    at_work = [i for state in seen for i in state.instances if i.counts]
    assert {(i.region, i.fleet_id) for i in at_work} == {("us-east-1", "eks/workers")}
    targets = {str(fleet.region): fleet.target_capacity for fleet in seen[-1].fleets}
    assert targets["us-east-1"] == 0, "it is lowered with each node that is ended"
    assert result.targets["primary-small"][-1][1] == sum(targets.values())


def test_snapshot_of_a_moment_says_what_the_simulated_groups_were() -> None:
    """`plan --explain` on a moment gave another answer than the simulation's plan."""
    config = settings(max_capacity=9)
    shortage = FaultDemand(at=AT, fault="capacity", until=AT + timedelta(minutes=7))
    found: list[Snapshot] = []
    simulation = Simulation(folded([shortage, *jobs()]), config, OPTIONS)
    simulation.process.plan_hooks.append(  # type: ignore[attr-defined] # the loop's own program
        lambda snapshot, _: found.append(snapshot)
    )
    simulation.run()
    failed = next(s for s in found if s.cloud and s.cloud.fleets[0].launch_errors)
    grown = max(found, key=lambda s: len(s.cloud.instances) if s.cloud else 0)
    for snapshot in (failed, grown):
        assert read_back(snapshot) == facts(snapshot.cloud)


def read_back(snapshot: Snapshot) -> object:
    """What the files of a snapshot say of the cloud."""
    answers = [
        orjson.loads(body)
        for name, body in snapshot_files(snapshot).items()
        if name.startswith("aws-")
    ]
    named = frozenset({"eks/workers"})
    read = decode_cloud(
        ((answer["Region"], answer) for answer in answers), cluster="c", groups=named
    )
    assert not read.ignored
    return facts(read)


def facts(cloud: CloudState | None) -> object:
    """What planning reads of groups and their members."""
    assert cloud is not None
    fleets = [
        (f.id, f.provider, f.region, f.state, f.target_capacity, f.instance_types, f.zones,
         f.lifecycle, f.min_size, f.max_size, [(e.at, e.code) for e in f.launch_errors])
        for f in cloud.fleets
    ]  # fmt: skip
    instances = [
        (i.id, i.fleet_id, i.state, i.instance_type, i.zone, i.launched_at, i.lifecycle)
        for i in cloud.instances
    ]
    return fleets, instances


@pytest.mark.parametrize("peer", ["karpenter", "cluster-autoscaler"])
@pytest.mark.parametrize("regions", [REGIONS[:1], REGIONS])
def test_models_have_the_same_groups(peer: str, regions: tuple[str, ...]) -> None:
    """A model would be judged on other nodes than the config beside it."""
    config = settings(regions=regions)
    shortage = FaultDemand(at=AT, fault="capacity", until=AT + timedelta(minutes=2))
    result = played(peer_of(peer), folded([shortage, *jobs()]), config, OPTIONS)
    assert (result.pods, result.history.waiting) == (6, 0)
    assert {launch.fleet for launch in result.launches} == {"primary-small"}
    assert all(launch.end < result.seconds for launch in result.launches)

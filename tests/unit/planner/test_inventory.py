"""Fleets, groups and nodes joined: who belongs to whom."""

from datetime import UTC, datetime

from reconciler.model.fleet import Fleet
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState, ClusterState, Snapshot
from reconciler.planner.planner import plan
from tests.builders import make_fleet_settings, make_settings

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOME = Region("us-west-2")


def test_group_that_the_config_names_is_the_fleet_of_that_name() -> None:
    """An Auto Scaling group has no fleet tag: unless matched by name it would seem missing."""
    fleet = make_fleet_settings(
        name="primary-small", provider="asg", auto_scaling_group="eks-workers", min_capacity=1
    )
    group = Fleet(
        id=FleetId("eks-workers"),
        name="eks-workers",
        provider="asg",
        region=HOME,
        state="active",
        target_capacity=3,
    )
    snapshot = Snapshot(
        at=AT,
        cluster=ClusterState(),
        cloud=CloudState(fleets=(group,), regions=frozenset({HOME})),
    )
    made = plan(snapshot, make_settings(fleet))
    assert [(f.fleet, f.state, f.current) for f in made.fleets] == [("primary-small", "active", 3)]

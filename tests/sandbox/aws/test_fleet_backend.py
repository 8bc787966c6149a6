"""The fleet's state machine alone: no server, no moto, an EC2 of ten lines."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.state.fleet import Fleet
from reconciler.sandbox.aws.values import (
    Delays,
    FleetChange,
    FleetRequest,
    FleetState,
    LaunchRefusal,
    LaunchTemplateRef,
    Lifecycle,
    Member,
    Pool,
    TargetCapacity,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DELAYS = Delays(activate_seconds=5, modify_seconds=10, dispatch_seconds=3, retry_seconds=60)


class FakeEc2:
    """Launches at once, ends at once, and refuses the types it is told to."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now
        self.refused_types: set[str] = set()
        self.launched = 0
        self.fleet: Fleet | None = None

    def launch(self, fleet: Fleet, pool: Pool, lifecycle: Lifecycle) -> Member | LaunchRefusal:
        if pool.instance_type in self.refused_types:
            return LaunchRefusal(code="InsufficientInstanceCapacity", message="none left")
        self.launched += 1
        return Member(
            instance_id=f"i-{self.launched}",
            number=self.launched,
            pool=pool,
            lifecycle=lifecycle,
            spot_request_id=None,
            launched_at=self.now,
        )

    def terminate(self, instance_ids: Sequence[str]) -> None:
        assert self.fleet is not None
        for instance_id in instance_ids:
            self.fleet.member_leaving(instance_id, self.now)


def make_pool(order: int, instance_type: str = "r5.xlarge", **overrides: object) -> Pool:
    """A pool in a zone of its own."""
    pool = Pool(
        template=LaunchTemplateRef(template_id="lt-1"),
        instance_type=instance_type,
        zone=f"us-west-2{'abcdef'[order % 6]}",
        subnet_id=f"subnet-{order}",
        weight=1.0,
        priority=float("inf"),
        max_price=None,
        image_id=None,
        order=order,
    )
    return replace(pool, **overrides)  # type: ignore[arg-type]  # whatever a test varies


def make_fleet(
    total: int, *, pools: Sequence[Pool] = (), delays: Delays = DELAYS, **overrides: object
) -> tuple[Fleet, FakeEc2]:
    """A maintain fleet of spot instances, and the EC2 it lives in."""
    request = FleetRequest(
        fleet_type="maintain",
        target=TargetCapacity(total=total, on_demand=0, spot=total, default_type="spot"),
        pools=tuple(pools) or (make_pool(0), make_pool(1, "m5.2xlarge")),
        launch_template_configs=(),
        excess_policy="no-termination",
        spot_options={"AllocationStrategy": "diversified"},
        on_demand_options={"AllocationStrategy": "lowestPrice"},
        replace_unhealthy=False,
        terminate_with_expiration=False,
    )
    fleet = Fleet(
        fleet_id="fleet-1",
        request=replace(request, **overrides),  # type: ignore[arg-type]  # whatever a test varies
        created_at=NOW,
        delays=delays,
    )
    ec2 = FakeEc2()
    ec2.fleet = fleet
    return fleet, ec2


def after(seconds: float) -> datetime:
    """A moment after the fleet was created."""
    return NOW + timedelta(seconds=seconds)


def run(fleet: Fleet, ec2: FakeEc2, until: float) -> None:
    """Let the fleet do what is due, each thing at its own moment, as the world's thread does."""
    now = NOW
    while now <= after(until):
        ec2.now = now
        fleet.advance(now, ec2)
        due = fleet.next_due(now)
        if due is None:
            break
        now = due


def test_fleet_is_submitted_active_then_launching_in_its_own_time() -> None:
    """A reader that takes `submitted` for ready would wait for nodes that nobody launches."""
    fleet, ec2 = make_fleet(2)
    fleet.advance(after(1), ec2)
    assert (fleet.state, len(fleet.members)) == (FleetState.SUBMITTED, 0)
    run(fleet, ec2, until=5)
    assert (fleet.state, fleet.activity_status) == (FleetState.ACTIVE, "pending_fulfillment")
    run(fleet, ec2, until=8)
    assert (len(fleet.members), fleet.activity_status) == (2, "fulfilled")
    assert fleet.next_due(after(8)) is None


def test_weights_count_units_not_instances() -> None:
    """A weighted fleet that launched one instance per unit would cost a multiple."""
    pools = (make_pool(0, weight=4.0),)
    fleet, ec2 = make_fleet(10, pools=pools, delays=Delays())
    run(fleet, ec2, until=0)
    assert len(fleet.members) == 3
    assert fleet.fulfilled() == 12


def test_termination_policy_never_goes_below_the_target() -> None:
    """Ending a heavy instance for a small excess would leave the fleet short."""
    pools = (make_pool(0, weight=4.0),)
    fleet, ec2 = make_fleet(10, pools=pools, delays=Delays(), excess_policy="termination")
    run(fleet, ec2, until=0)
    fleet.modify(FleetChange(total=9), NOW)
    fleet.advance(NOW, ec2)
    assert fleet.fulfilled() == 12
    fleet.modify(FleetChange(total=8), NOW)
    fleet.advance(NOW, ec2)
    assert fleet.fulfilled() == 8


def test_both_lifecycles_are_kept_at_their_parts() -> None:
    """The on-demand base is not to be filled with spot, nor the other way round."""
    target = TargetCapacity(total=5, on_demand=2, spot=3, default_type="spot")
    fleet, ec2 = make_fleet(5, delays=Delays(), target=target)
    run(fleet, ec2, until=0)
    assert (fleet.fulfilled("on-demand"), fleet.fulfilled("spot")) == (2, 3)
    fleet.modify(FleetChange(total=9), NOW)
    fleet.advance(NOW, ec2)
    assert (fleet.fulfilled("on-demand"), fleet.fulfilled("spot")) == (2, 7)


def test_refused_pool_is_left_alone_until_its_retry() -> None:
    """A fleet that hammers a dry pool would fill its history with thousands of errors."""
    fleet, ec2 = make_fleet(1, pools=(make_pool(0, "r5.large"),), delays=Delays(retry_seconds=60))
    ec2.refused_types = {"r5.large"}
    fleet.advance(NOW, ec2)
    fleet.advance(after(59), ec2)
    errors = fleet.history.select(since=NOW, event_type="service-error")
    assert len(errors) == 2
    assert fleet.activity_status == "error"
    assert fleet.next_due(NOW) == after(60)
    ec2.refused_types.clear()
    fleet.advance(after(60), ec2)
    assert fleet.activity_status == "fulfilled"


def test_lowering_the_target_ends_the_error() -> None:
    """A fleet that nobody wants more of is not in trouble."""
    fleet, ec2 = make_fleet(1, pools=(make_pool(0, "r5.large"),), delays=Delays())
    ec2.refused_types = {"r5.large"}
    fleet.advance(NOW, ec2)
    fleet.modify(FleetChange(total=0), NOW)
    fleet.advance(NOW, ec2)
    assert fleet.activity_status == "fulfilled"


def test_expired_fleet_is_deleted_and_keeps_or_ends_its_instances() -> None:
    """ValidUntil ends a fleet by itself; its instances go only if that was asked for."""
    for terminate, left in ((False, 2), (True, 0)):
        fleet, ec2 = make_fleet(
            2, delays=Delays(), valid_until=after(100), terminate_with_expiration=terminate
        )
        run(fleet, ec2, until=100)
        assert not fleet.is_live
        assert len(fleet.members) == left


def test_deleted_fleet_cannot_be_modified() -> None:
    """Raising the target of a deleted fleet must not look like success."""
    fleet, _ = make_fleet(1)
    fleet.delete(terminate=False, now=NOW)
    with pytest.raises(Ec2Fault, match="FleetNotInModifiableState"):
        fleet.modify(FleetChange(total=3), NOW)

"""What counts as drift."""

from typing import Any

from reconciler.gitops.drift import drift_report, fleet_drift
from reconciler.gitops.limits import config_facts
from reconciler.model.fleet import Fleet
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState
from tests.unit.gitops.plans import fleet_attributes, fleet_change, plan, resource


def kinds(shown: dict[str, Any]) -> list[tuple[str, str]]:
    """Kind and fleet of each drift."""
    return [(drift.kind, drift.fleet) for drift in drift_report(shown).drifts]


def outside(before: dict[str, Any], after: dict[str, Any] | None) -> dict[str, Any]:
    """A change that Terraform found when it refreshed."""
    actions = ["delete"] if after is None else ["update"]
    return plan(resource_drift=[resource("aws_ec2_fleet", actions, before, after)])


def test_scaled_fleet_is_no_drift() -> None:
    """A month of scaling by the capacity loop must leave the report empty."""
    assert kinds(outside(fleet_attributes(target=2), fleet_attributes(target=50))) == []


def test_changed_tag_is_drift() -> None:
    """Someone who edits tags by hand hides the fleet from the capacity loop."""
    changed = fleet_attributes(tags={"fleet": "primary-small", "x": "y"})
    (drift,) = drift_report(outside(fleet_attributes(), changed)).drifts
    assert (drift.kind, drift.detail) == ("changed-outside", "tags")


def test_empty_instead_of_absent_is_no_drift() -> None:
    """Providers fill in empty lists; nobody changed anything."""
    assert kinds(outside(fleet_attributes(context=None), fleet_attributes(context=[]))) == []
    assert kinds(outside(fleet_attributes(flag=None), fleet_attributes(flag=False))) != []


def test_deleted_fleet_is_gone() -> None:
    """A fleet that vanished must be reported before its pods are missed."""
    assert kinds(outside(fleet_attributes(), None)) == [("gone", "primary-small")]


def test_config_that_was_not_applied_is_drift() -> None:
    """A merged change that never reached EC2 is the commonest drift."""
    assert kinds(plan(fleet_change(["create"]))) == [("config-differs", "primary-small")]


def test_nothing_to_do_is_no_drift() -> None:
    """A quiet night must stay quiet."""
    assert not drift_report(plan(fleet_change(["no-op"]))).found


FACTS = config_facts(
    b"cluster: analytics\nregions: [us-west-2]\nallow_destroy: [primary-large]\n"
    b"sectors: {primary: {kind: memory, fleets: [{size: small, min_capacity: 2, max_capacity: 5},"
    b" {size: medium}, {size: large, min_capacity: 1}]}}\n"
)


def seen(
    *fleets: tuple[str, int], regions: tuple[str, ...] = ("us-west-2",)
) -> set[tuple[str, ...]]:
    """Kind, fleet and detail of each drift of these fleets with these targets."""
    live = tuple(
        Fleet(
            id=FleetId(f"fleet-{name}"),
            name=name,
            provider="ec2-fleet",
            region=Region("us-west-2"),
            state="active",
            target_capacity=target,
        )
        for name, target in fleets
    )
    cloud = CloudState(fleets=live, regions=frozenset(map(Region, regions)))
    found = fleet_drift(FACTS, Region("us-west-2"), cloud)
    return {(each.kind, each.fleet, each.detail) for each in found}


def test_capacity_outside_the_configs_limits_is_told() -> None:
    """Only the limits are the config's; where between them a fleet is, is the loop's."""
    others = (("primary-medium", 900), ("primary-large", 0))
    assert seen(("primary-small", 2), *others) == seen(("primary-small", 5), *others) == set()
    assert seen(("primary-small", 1), *others) == {
        ("capacity-outside", "primary-small", "target capacity 1 is below min_capacity 2")
    }
    assert seen(("primary-small", 6), *others) == {
        ("capacity-outside", "primary-small", "target capacity 6 is above max_capacity 5")
    }


def test_fleets_missing_and_extra_are_told_of_regions_that_answered() -> None:
    """Of a Region that is silent nothing is known, so that nothing is missing there."""
    live = (("primary-small", 2), ("primary-large", 1), ("primary-old", 3))
    assert seen(*live) == {
        ("fleet-missing", "primary-medium", "not in EC2"),
        ("fleet-extra", "primary-old", "in us-west-2, not in the config"),
    }
    assert seen(regions=()) == set()


def test_second_fleet_of_a_name_is_extra() -> None:
    """An apply that was cut off, or a hand, made one twice: nobody sizes the second."""
    home = Region("us-west-2")
    twins = tuple(
        Fleet(
            id=FleetId(f"fleet-{number}"),
            name=name,
            provider="ec2-fleet",
            region=home,
            state="active",
            target_capacity=2,
        )
        for number, name in enumerate(["primary-small", "primary-medium", "primary-small"])
    )
    cloud = CloudState(fleets=twins, regions=frozenset({home}))
    found = {(d.kind, d.address, d.detail) for d in fleet_drift(FACTS, home, cloud)}
    assert found == {
        ("fleet-missing", "", "not in EC2"),
        ("fleet-extra", "fleet-2", "another fleet, fleet-0, has its name"),
    }

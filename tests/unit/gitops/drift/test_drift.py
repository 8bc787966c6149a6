"""What counts as drift."""

from typing import Any

from reconciler.gitops.drift.drift import drift_report, fleet_drift
from reconciler.gitops.terraform_plan.config_facts import config_facts
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState
from tests.unit.gitops.plans import (
    fleet_arn,
    fleet_attributes,
    fleet_change,
    group_attributes,
    plan,
    resource,
)


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


def test_fleet_in_another_region_than_the_roots_is_drift() -> None:
    """It lives and is looked for where it is not: "not in EC2 any more" would be wrong."""
    away = fleet_attributes(arn=fleet_arn("primary-small", "us-east-1"))
    (drift,) = drift_report(outside(away, None)).drifts
    assert (drift.kind, drift.fleet) == ("gone", "primary-small")
    assert drift.detail == "the state has it in us-east-1, and it was looked for in us-west-2"
    template = {"id": "lt-1", "arn": fleet_arn("x", "us-east-1").replace("fleet/", "template/")}
    gone = resource("aws_launch_template", ["delete"], template, None)
    assert [each.detail for each in drift_report(plan(resource_drift=[gone])).drifts] == [
        drift.detail
    ]


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
    return {(drift.kind, drift.fleet, drift.detail) for drift in found}


def test_capacity_outside_the_configs_limits_is_reported() -> None:
    """Only the limits are the config's; where between them a fleet is, is the loop's."""
    others = (("primary-medium", 900), ("primary-large", 0))
    assert seen(("primary-small", 2), *others) == seen(("primary-small", 5), *others) == set()
    assert seen(("primary-small", 1), *others) == {
        ("capacity-outside", "primary-small", "target capacity 1 is below min_capacity 2")
    }
    assert seen(("primary-small", 6), *others) == {
        ("capacity-outside", "primary-small", "target capacity 6 is above max_capacity 5")
    }


def test_fleets_missing_and_extra_are_reported_regions_that_answered() -> None:
    """Of a Region that is silent nothing is known, so that nothing is missing there."""
    live = (("primary-small", 2), ("primary-large", 1), ("primary-old", 3))
    assert seen(*live) == {
        ("fleet-missing", "primary-medium", "not in EC2"),
        ("fleet-extra", "primary-old", "in us-west-2, not in the config"),
    }
    assert seen(regions=()) == set()


def test_fleet_in_a_region_that_it_left_is_extra() -> None:
    """Its name is in the config, for another Region: this one would be forgotten."""
    facts = config_facts(
        b"cluster: analytics\nregions: [us-west-2, us-east-1]\n"
        b"sectors: {primary: {kind: memory, fleets: [{size: small, regions: [us-west-2]},"
        b" {size: medium}]}}\n",
        region="us-east-1",
    )
    away = Region("us-east-1")
    left, stays = (
        Fleet(
            id=FleetId(f"fleet-{name}"),
            name=name,
            provider="ec2-fleet",
            region=away,
            state="active",
            target_capacity=1,
        )
        for name in ("primary-small", "primary-medium")
    )
    cloud = CloudState(fleets=(left, stays), regions=frozenset({away}))
    found = [(d.kind, d.fleet, d.detail) for d in fleet_drift(facts, away, cloud)]
    assert found == [("fleet-extra", "primary-small", "in us-east-1, not in the config")]


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


def test_scaled_group_with_a_suspended_process_is_no_drift() -> None:
    """In an incident people suspend Launch; the report must not tell every run to undo that."""
    before = group_attributes(target=2, suspended_processes=["AZRebalance"])
    after = group_attributes(target=9, suspended_processes=["AZRebalance", "Launch"])
    change = resource("aws_autoscaling_group", ["update"], before, after, key="web-small")
    assert kinds(plan(resource_drift=[change])) == []
    after["max_size"] = 5
    assert kinds(plan(resource_drift=[change])) == [("changed-outside", "web-small")]


def test_groups_of_the_config_are_compared_by_their_own_names() -> None:
    """A group that was imported has no tags of ours, and one that others tagged is none of ours."""
    facts = config_facts(
        b"cluster: analytics\nregions: [us-west-2]\nsectors:\n"
        b"  web: {kind: cpu, fleets: [{size: small, provider: asg, auto_scaling_group: a,"
        b" max_capacity: 3}, {size: large, provider: asg, auto_scaling_group: b}]}\n"
    )
    ours = {"cluster": "analytics", "fleet": "web-old"}
    theirs = {"k8s.io/cluster-autoscaler/enabled": "true"}
    groups = [("a", {}, 5), ("old", ours, 0), ("others", theirs, 1)]
    cloud = CloudState(
        regions=frozenset({Region("us-west-2")}),
        fleets=tuple(
            Fleet(
                id=FleetId(name),
                name=tags.get("fleet", name),
                provider="asg",
                region=Region("us-west-2"),
                state="active",
                target_capacity=target,
                tags=FrozenMap(tags),
            )
            for name, tags, target in groups
        ),
    )
    found = fleet_drift(facts, Region("us-west-2"), cloud, "asg")
    assert [(d.kind, d.type, d.fleet) for d in found] == [
        ("capacity-outside", "aws_autoscaling_group", "web-small"),
        ("fleet-extra", "aws_autoscaling_group", "web-old"),
        ("fleet-missing", "aws_autoscaling_group", "web-large"),
    ]
    assert fleet_drift(facts, Region("us-west-2"), CloudState(regions=cloud.regions)) == ()

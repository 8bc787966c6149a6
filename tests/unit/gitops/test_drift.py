"""What counts as drift."""

from typing import Any

from reconciler.gitops.drift import drift_report
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

"""What failed launches lack, by AWS's codes and words."""

import pytest

from reconciler.model.fleet import FleetEvent
from reconciler.model.saved_state import FailureKind
from reconciler.planner.fleets.launch_errors import kind_of_launch_error, last_failure
from tests.builders import ago, capacity_error

VCPU_LIMIT = (
    "You have requested more vCPU capacity than your current vCPU limit of 64 allows for the "
    "instance bucket that the specified instance type belongs to."
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InsufficientInstanceCapacity", "capacity"),
        ("UnfulfillableCapacity", "capacity"),
        ("allLaunchSpecsTemporarilyBlacklisted", "capacity"),
        ("MaxSpotInstanceCountExceeded", "quota"),
        ("spotInstanceCountLimitExceeded", "quota"),
        ("VcpuLimitExceeded", "quota"),
        ("InstanceLimitExceeded", "quota"),
        ("RequestLimitExceeded", "launch-fails"),
        ("iamFleetRoleInvalid", "launch-fails"),
        ("InvalidAMIID.NotFound", "launch-fails"),
        ("UnauthorizedOperation", "launch-fails"),
        ("InsufficientFreeAddressesInSubnet", "launch-fails"),
        ("SpotMaxPriceTooLow", "launch-fails"),
    ],
)
def test_code_says_what_a_launch_lacks(code: str, kind: FailureKind) -> None:
    """No instance type, size or zone fixes a template or raises a quota."""
    event = FleetEvent(at=ago(60), code=code, message="more capacity than the limit")
    assert kind_of_launch_error(event) == kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("We currently do not have sufficient m5.large capacity in the zone", "capacity"),
        (VCPU_LIMIT, "quota"),
        ("Max spot instance count exceeded", "quota"),
        ("Request limit exceeded. Launching EC2 instance failed.", "launch-fails"),
        ("The security group 'sg-0' does not exist.", "launch-fails"),
        ("", "launch-fails"),
    ],
)
def test_words_count_where_aws_names_no_code(words: str, kind: FailureKind) -> None:
    """Auto Scaling tells of many failures in words only."""
    assert kind_of_launch_error(FleetEvent(at=ago(60), code="", message=words)) == kind


def test_capacity_counts_before_other_errors_of_its_attempt() -> None:
    """One type that a zone does not have would hide that the others have no capacity there."""
    other = FleetEvent(
        at=ago(55), code="Unsupported", message="m9.large is not offered in this zone"
    )
    assert last_failure([capacity_error(60), other]) == (
        "capacity",
        "InsufficientInstanceCapacity",
    )
    assert last_failure([capacity_error(600), other]) == (
        "launch-fails",
        "Unsupported: m9.large is not offered in this zone",
    )


@pytest.mark.parametrize("code", ["spotInstanceCountLimitExceeded", "iamFleetRoleInvalid"])
def test_end_of_attempts_hides_no_error_before_it(code: str) -> None:
    """EC2 gives up after errors of any kind, and would always seem to lack capacity."""
    given_up = capacity_error(50, "allLaunchSpecsTemporarilyBlacklisted")
    assert last_failure([capacity_error(60, code), given_up])[1] == code
    assert last_failure([given_up]) == ("capacity", "allLaunchSpecsTemporarilyBlacklisted")


def test_code_that_the_words_hold_is_not_said_twice() -> None:
    """Groups have both in one text."""
    words = "Could not launch On-Demand Instances. VcpuLimitExceeded - sorry"
    event = FleetEvent(at=ago(60), code="VcpuLimitExceeded", message=words)
    assert last_failure([event]) == ("quota", words)
    assert last_failure([FleetEvent(at=ago(60), code="")]) == (
        "launch-fails",
        "AWS gives no reason",
    )

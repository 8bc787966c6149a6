"""Ends that EC2 refuses: instances that somebody has protected from termination."""

import pytest

from reconciler.model.errors import Refused, TerminationProtected
from reconciler.model.ids import InstanceId
from tests.contract.scripted import Answer
from tests.contract.scripted_ec2 import (
    ALIVE,
    HOME,
    Ec2Script,
    Make,
    instances,
    make_scripted,
    refusal,
    xml,
)

__all__ = ["make_scripted"]

PROTECTED = (
    "The instance '{}' may not be terminated. Modify its 'disableApiTermination' instance "
    "attribute and try again."
)
"""What EC2 says; it names one instance, whatever else of the call is protected."""


def of_zone(instance: str) -> str:
    """The zone of a scripted instance: the last digit of its id."""
    return instance[-1]


def with_protected(protected: set[str], ended: set[str]) -> Ec2Script:
    """Ends what is asked, except in zones of which a protected instance is named."""

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        if action == "DescribeInstances":
            return instances()
        asked = {value for key, values in parameters.items() for value in values if "Id." in key}
        kept = sorted(protected & asked)
        ended.update(each for each in asked if of_zone(each) not in set(map(of_zone, kept)))
        if not kept:
            return xml(action)
        return refusal("OperationNotPermitted", message=PROTECTED.format(kept[0]))

    return script


def test_protected_instances_are_left_out_one_after_the_other(cloud: Make) -> None:
    """Instances in the zone of a protected one would run on for as long as that does."""
    asked = [InstanceId(f"i-{n:016x}{zone}") for n in range(3) for zone in "ab"]
    protected, ended = {asked[0], asked[3], asked[4]}, set[str]()
    scripted = cloud(with_protected(set(protected), ended))
    with scripted.open() as port, pytest.raises(TerminationProtected) as caught:
        port.terminate_instances(HOME, asked)
    assert caught.value.instances == protected
    assert ended == set(asked) - protected
    assert scripted.asked.count("TerminateInstances") == 4
    assert asked[0] in str(caught.value)


@pytest.mark.parametrize("message", ["no", PROTECTED.format("i-0000000000000000f")])
def test_refusal_that_names_no_instance_of_the_call_is_not_repeated(
    cloud: Make, message: str
) -> None:
    """The same call would be made without an end."""
    scripted = cloud(lambda *_: refusal("OperationNotPermitted", message=message))
    with scripted.open() as port, pytest.raises(Refused) as caught:
        port.terminate_instances(HOME, [ALIVE])
    assert caught.type is Refused  # of the other class it would say that all others were ended
    assert scripted.asked == ["TerminateInstances"]

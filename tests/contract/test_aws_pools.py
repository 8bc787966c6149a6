"""Changing where a fleet may launch: what EC2 is asked, and what it must not do by default."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

import pytest

from reconciler.adapters.aws.pools import set_pools
from reconciler.model.errors import Conflict
from reconciler.model.ids import FleetId, Region
from tests.contract.scripted import Answer, Request, scripted_server

CONFIGS = [{"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "$Latest"}}]


TYPED = [{**CONFIGS[0], "Overrides": [{"InstanceType": "r5.large", "SubnetId": "subnet-1"}]}]
Asked = list[dict[str, list[str]]]


@contextmanager
def ec2(monkeypatch: pytest.MonkeyPatch, fleets: str) -> Iterator[Asked]:
    """EC2 that takes every change and shows these fleets; what it is asked."""
    asked: Asked = []

    def answer(request: Request) -> Answer:
        asked.append(parse_qs(request.body.decode()))
        action = asked[-1]["Action"][0]
        content = "<return>true</return>" if action == "ModifyFleet" else fleets
        return Answer(body=f"<{action}Response>{content}</{action}Response>".encode())

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with scripted_server(answer) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield asked


def test_new_pools_end_no_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """EC2's default policy would let it end what is over the target, pods and all."""
    with ec2(monkeypatch, "<fleetSet/>") as asked:
        set_pools(Region("us-west-2"), FleetId("fleet-1"), CONFIGS, lambda _: None)
    (change,) = [each for each in asked if each["Action"] == ["ModifyFleet"]]
    assert change["ExcessCapacityTerminationPolicy"] == ["no-termination"]
    assert "TargetCapacitySpecification.TotalTargetCapacity" not in change


def test_change_that_never_comes_into_force_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The apply would say that the fleet has its new types, and its nodes come from the old."""
    item = "<item><fleetId>fleet-1</fleetId><fleetState>modifying</fleetState></item>"
    pauses: list[float] = []
    with (
        ec2(monkeypatch, f"<fleetSet>{item}</fleetSet>"),
        pytest.raises(Conflict, match="60 looks"),
    ):
        set_pools(Region("us-west-2"), FleetId("fleet-1"), TYPED, pauses.append)
    assert len(pauses) == 60

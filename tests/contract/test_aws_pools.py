"""Changing where a fleet may launch: what EC2 is asked, and what it must not do by default."""

from urllib.parse import parse_qs

import pytest

from reconciler.adapters.aws.pools import set_pools
from reconciler.model.ids import FleetId, Region
from tests.contract.scripted import Answer, Request, scripted_server

CONFIGS = [{"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "$Latest"}}]


def test_new_pools_end_no_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """EC2's default policy would let it end what is over the target, pods and all."""
    asked: list[dict[str, list[str]]] = []

    def answer(request: Request) -> Answer:
        asked.append(parse_qs(request.body.decode()))
        action = asked[-1]["Action"][0]
        content = "<return>true</return>" if action == "ModifyFleet" else "<fleetSet/>"
        return Answer(body=f"<{action}Response>{content}</{action}Response>".encode())

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with scripted_server(answer) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        set_pools(Region("us-west-2"), FleetId("fleet-1"), CONFIGS, lambda _: None)
    (change,) = [each for each in asked if each["Action"] == ["ModifyFleet"]]
    assert change["ExcessCapacityTerminationPolicy"] == ["no-termination"]
    assert "TargetCapacitySpecification.TotalTargetCapacity" not in change

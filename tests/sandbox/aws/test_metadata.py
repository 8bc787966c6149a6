"""Instance metadata of emulated instances over HTTP, as IMDSv2 answers."""

import json
from http.client import HTTPConnection, HTTPException
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

from reconciler.model.errors import ReconcilerError
from reconciler.node_watch.metadata import InstanceMetadata
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer
from tests.sandbox.capacity.fleets import create_fleet
from tests.waiting import until

pytestmark = pytest.mark.sandbox
_NUMBERS = count()
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"


def ask(url: str, method: str, path: str, **headers: str) -> tuple[int, str]:
    """One request on a connection of its own: status and text."""
    connection = HTTPConnection(str(urlsplit(url).netloc), timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def token_of(url: str, seconds: int = 60) -> str:
    """A session token."""
    status, token = ask(url, "PUT", "/latest/api/token", **{TTL: str(seconds)})
    assert status == 200
    return token


def document(url: str, token: str, path: str) -> tuple[int, str]:
    """A document below meta-data."""
    return ask(url, "GET", f"/latest/meta-data/{path}", **{TOKEN: token})


@pytest.fixture
def control(aws: AwsServer) -> ControlClient:
    """The control API."""
    return ControlClient(aws.url)


@pytest.fixture
def instances(aws: AwsServer, clock: ManualClock, control: ControlClient) -> list[str]:
    """Two running spot instances."""
    fleet = create_fleet(aws.url, "small", 2, sector=f"imds{next(_NUMBERS)}")

    def running() -> Any:
        clock.advance(60)
        facts = control.instances()[1]
        mine = [e for e in facts if e["fleet_id"] == fleet and e["state"] == "running"]
        return mine if len(mine) == 2 else None

    return [str(each["instance_id"]) for each in until("the instances run", running)]


@pytest.fixture
def instance(instances: list[str]) -> str:
    """One of them."""
    return instances[0]


def test_documents_ask_for_a_token_that_is_valid(
    control: ControlClient, instance: str, clock: ManualClock
) -> None:
    """IMDSv2 answers nothing to a request that some program was made to send for another."""
    url = control.metadata_url(instance)
    assert ask(url, "GET", "/latest/meta-data/instance-id")[0] == 401
    assert document(url, "invented", "instance-id")[0] == 401
    token = token_of(url, 60)
    assert document(url, token, "instance-id") == (200, instance)
    clock.advance(61)
    assert document(url, token, "instance-id")[0] == 401


def test_token_is_refused_as_ec2_refuses_it(control: ControlClient, instance: str) -> None:
    """A client that leaves out the TTL, or a proxy in between, gets none."""
    url = control.metadata_url(instance)
    refused = [
        ({}, 400),
        ({TTL: "0"}, 400),
        ({TTL: "21601"}, 400),
        ({TTL: "soon"}, 400),
        ({TTL: "60", "X-Forwarded-For": "10.0.0.1"}, 403),
    ]
    for headers, status in refused:
        assert ask(url, "PUT", "/latest/api/token", **headers)[0] == status, headers


def test_documents_are_there_when_something_is_announced(
    control: ControlClient, instance: str
) -> None:
    """An announcement to the instance must be its own, in the forms of the user guide."""
    url = control.metadata_url(instance)
    token = token_of(url)
    assert document(url, token, "spot/instance-action")[0] == 404
    assert document(url, token, "events/recommendations/rebalance")[0] == 404
    assert document(url, token, "autoscaling/target-lifecycle-state")[0] == 404
    assert document(url, token, "events/maintenance/scheduled") == (200, "[]")
    control.announce("rebalance", [instance])
    control.announce("scheduled-change", [instance], 86_400)
    control.interrupt([instance], 3600)
    status, text = document(url, token, "spot/instance-action")
    assert (status, json.loads(text)["action"]) == (200, "terminate")
    (event,) = json.loads(document(url, token, "events/maintenance/scheduled")[1])
    assert event["State"] == "active"
    client = InstanceMetadata(url, lambda: 0.0)
    said = client.read()
    client.close()
    actions = {"terminate", "rebalance-recommendation", "scheduled-change"}
    assert {notice.action for notice in said.notices} == actions
    assert said.problems == ()


def test_each_instance_has_metadata_of_its_own(
    control: ControlClient, instances: list[str]
) -> None:
    """What is announced to one would empty all nodes."""
    with pytest.raises(ReconcilerError, match="no instance"):
        control.metadata_url("i-unknown")
    control.interrupt(instances[:1], 3600)
    found = []
    for each in instances:
        url = control.metadata_url(each)
        found.append(document(url, token_of(url), "spot/instance-action")[0])
    assert found == [200, 404]


def test_ended_instance_answers_nothing(control: ControlClient, instance: str) -> None:
    """A program on it would go on reading."""
    url = control.metadata_url(instance)
    token = token_of(url)
    control.terminate([instance])
    with pytest.raises((HTTPException, OSError)):
        document(url, token, "instance-id")

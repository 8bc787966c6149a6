"""A scripted EC2, and the real adapter of EC2 Fleets over it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

import pytest
from botocore.config import Config

from reconciler.adapters.aws import Clients, Ec2FleetCloud
from reconciler.model.ids import FleetId, InstanceId, Region
from tests.contract.scripted import Answer, Request, scripted_server

HOME = Region("us-west-2")
AWAY = Region("us-east-1")
FLEET = FleetId("fleet-1")
GONE, ALIVE = InstanceId("i-00000000000000001"), InstanceId("i-00000000000000002")
IMPATIENT = Config(
    retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=20, read_timeout=20
)
Ec2Script = Callable[[str, dict[str, list[str]]], Answer | None]


def xml(action: str, content: str = "") -> Answer:
    """EC2's answer to an action."""
    found = f"<requestId>r</requestId>{content}"
    return Answer(body=f"<{action}Response>{found}</{action}Response>".encode())


def refusal(code: str, status: int = 400, message: str = "no") -> Answer:
    """EC2's error."""
    errors = f"<Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
    return Answer(status, f"<Response>{errors}<RequestID>r</RequestID></Response>".encode())


def instances(*ids: str, state: str = "running") -> Answer:
    """A DescribeInstances answer."""
    items = "".join(
        f"<item><instanceId>{each}</instanceId>"
        f"<instanceState><name>{state}</name></instanceState></item>"
        for each in ids
    )
    found = f"<item><instancesSet>{items}</instancesSet></item>" if ids else ""
    return xml("DescribeInstances", f"<reservationSet>{found}</reservationSet>")


@pytest.fixture(name="cloud")
def make_scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Ec2Script], "Scripted"]:
    """Makes the adapter over a scripted EC2."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    return lambda script: Scripted(script, monkeypatch)


class Scripted:
    """The adapter, and what it asked for."""

    def __init__(self, script: Ec2Script, monkeypatch: pytest.MonkeyPatch) -> None:
        self._script = script
        self._monkeypatch = monkeypatch
        self.asked: list[str] = []

    def _answer(self, request: Request) -> Answer | None:
        parameters = parse_qs(request.body.decode())
        action = parameters["Action"][0]
        self.asked.append(action)
        return self._script(action, parameters)

    @contextmanager
    def open(self) -> Iterator[Ec2FleetCloud]:
        """Serve and connect."""
        with scripted_server(self._answer) as url:
            self._monkeypatch.setenv("AWS_ENDPOINT_URL", url)
            adapter = Ec2FleetCloud("analytics", Clients(IMPATIENT))
            try:
                yield adapter
            finally:
                adapter.close()


Make = Callable[[Ec2Script], Scripted]


def fleet_xml(fleet_id: str, state: str = "active", fulfilled: int = 1) -> str:
    """A fleet of the cluster whose target is 2."""
    return (
        f"<item><fleetId>{fleet_id}</fleetId><fleetState>{state}</fleetState>"
        "<type>maintain</type>"
        f"<fulfilledCapacity>{fulfilled}</fulfilledCapacity><targetCapacitySpecification>"
        "<totalTargetCapacity>2</totalTargetCapacity></targetCapacitySpecification><tagSet>"
        "<item><key>cluster</key><value>analytics</value></item>"
        "<item><key>fleet</key><value>f</value></item></tagSet></item>"
    )

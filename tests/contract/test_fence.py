"""The fence: a replica that leads no more sends nothing that changes anything, retries included."""

from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.config import Config

from reconciler.adapters.aws import Clients, Ec2FleetCloud
from reconciler.adapters.kubernetes import LeaseHome, connect
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.model.errors import Refused
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from tests.contract.kubernetes_api import kubeconfig
from tests.contract.scripted import Answer, Request, json_answer, scripted_server

HOME = Region("us-west-2")
POD = PodKey(namespace="web", name="api-1", uid="u")
LIVING = {"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {}}
THROTTLED = Answer(
    503,
    b"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>slow</Message></Error>"
    b"</Errors><RequestID>r</RequestID></Response>",
)


@pytest.mark.parametrize(
    "change",
    [
        lambda verbs: verbs.annotate_node(NodeName("n"), {"a": "b"}),
        lambda verbs: verbs.evict_pod(POD, 30),
        lambda verbs: verbs.delete_pod(POD, 30),
        lambda verbs: verbs.delete_node(NodeName("n"), ""),
        lambda verbs: verbs.untaint_node(NodeName("n"), "k"),
        lambda verbs: verbs.remember({"a": "b"}),
    ],
)
def test_closed_fence_lets_reads_through_and_no_change(
    tmp_path: Path, change: Callable[[Verbs], object]
) -> None:
    """The check before the cycle is too early for a cycle that takes a minute."""
    seen: list[str] = []

    def script(request: Request) -> Answer:
        seen.append(request.method)
        taints = [{"key": "k", "effect": "NoSchedule"}]
        return json_answer({**LIVING, "spec": {"taints": taints}})

    with scripted_server(script) as url:
        transport = connect(kubeconfig(tmp_path, url), fence=lambda: False)
        with pytest.raises(Refused, match="is not the leader"):
            change(Verbs(transport, LeaseHome(namespace="kube-system")))
        transport.close()
    assert set(seen) <= {"GET"}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that no real AWS knows."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.mark.parametrize(
    ("operation", "change"),
    [
        ("ModifyFleet", lambda cloud: cloud.set_target_capacity(HOME, FleetId("fleet-1"), 3)),
        ("TerminateInstances", lambda cloud: cloud.terminate_instances(HOME, [InstanceId("i-1")])),
    ],
)
def test_fence_that_closes_between_two_tries_stops_the_second(
    keys: None,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    change: Callable[[Ec2FleetCloud], None],
) -> None:
    """boto3 repeats throttled calls for half a minute, by when another replica leads."""
    tries: list[str] = []
    open_once = iter([True])

    def script(request: Request) -> Answer:
        tries.append(request.body.decode())
        return THROTTLED

    with scripted_server(script) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        patient = Config(retries={"mode": "standard", "total_max_attempts": 4})
        clients = Clients(patient, fence=lambda: next(open_once, False))
        cloud = Ec2FleetCloud("analytics", clients)
        with pytest.raises(Refused, match="is not the leader"):
            change(cloud)
        cloud.close()
    assert len(tries) == 1
    assert f"Action={operation}" in tries[0]


def test_closed_fence_lets_a_standby_describe(keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby plans too, so that it can act at once."""
    asked: list[str] = []

    def script(request: Request) -> Answer:
        asked.append(request.body.decode())
        action = next(p for p in request.body.decode().split("&") if p.startswith("Action="))
        name = action.removeprefix("Action=")
        return Answer(body=f"<{name}Response><requestId>r</requestId></{name}Response>".encode())

    with scripted_server(script) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        cloud = Ec2FleetCloud("analytics", Clients(fence=lambda: False))
        assert HOME in cloud.observe([HOME]).regions
        cloud.close()
    assert asked

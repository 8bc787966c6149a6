"""The adapters over faulty APIs: what is sent again, what is not, and what is seen in the end."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import Any

import pytest

from reconciler.adapters.aws import Clients, Ec2FleetCloud
from reconciler.adapters.aws.request_limits import RequestLimits
from reconciler.adapters.kubernetes import KubernetesCluster, connect
from reconciler.model.cluster import Taint
from reconciler.model.errors import OutcomeUnknown, Throttled
from reconciler.model.ids import FleetId, InstanceId, NodeName, Region
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.server import ClusterServer
from reconciler.sandbox.faults.aws import AwsFaults
from reconciler.sandbox.faults.kubernetes import KubernetesFaults
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.cluster.kube import Kube, add_node, pod_body
from tests.waiting import until

HOME = Region("us-west-2")
NODE = NodeName("a")
DRAINING = Taint(key="fleet-reconciler.io/draining", value="scale-in", effect="NoSchedule")


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    """The emulated AWS, quick."""
    with AwsServer(delays=Delays(launch_seconds=0.0, modify_seconds=0.0)) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(server: AwsServer) -> FleetId:
    """A fleet of two instances."""
    return FleetId(create_fleet(server.url, "small", target=2))


@pytest.fixture(autouse=True)
def settings(server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What boto3 takes from the environment; and no faults of an earlier test."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.faults.clear()
    yield
    server.faults.clear()


@pytest.fixture
def cloud(server: AwsServer) -> Iterator[Ec2FleetCloud]:
    """The real adapter as the program makes it."""
    with closing(Ec2FleetCloud("analytics")) as made:
        made.observe([HOME])
        server.calls.clear()
        yield made


def fail(server: AwsServer, **fault: Any) -> None:
    """Put one fault of calls in force."""
    server.world.put_faults(AwsFaults.model_validate({"calls": [fault]}), seed=0)


def sent(server: AwsServer, action: str) -> list[str]:
    """What each call of an action met."""
    return [call.fault for call in server.calls.calls(action=action)]


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Unavailable"])
def test_change_that_was_not_taken_is_sent_again(
    cloud: Ec2FleetCloud, server: AwsServer, fleet: FleetId, code: str
) -> None:
    """A moment's throttling must not cost a whole cycle."""
    fail(server, fault="error", code=code, actions="ModifyFleet", count=2)
    cloud.set_target_capacity(HOME, fleet, 3)
    assert sent(server, "ModifyFleet") == ["error", "error", ""]
    assert cloud.fleet(HOME, fleet).target_capacity == 3


def test_change_that_is_throttled_for_long_is_given_up(
    cloud: Ec2FleetCloud, server: AwsServer, fleet: FleetId
) -> None:
    """The rest of the plan must go on: the next cycle comes back to it."""
    fail(server, fault="error", code="RequestLimitExceeded", actions="ModifyFleet")
    with pytest.raises(Throttled):
        cloud.set_target_capacity(HOME, fleet, 4)
    assert len(sent(server, "ModifyFleet")) == 4


@pytest.mark.parametrize(
    "fault", [{"fault": "lost-reply"}, {"fault": "error", "code": "InternalError"}]
)
def test_change_that_may_be_in_force_is_sent_once(
    cloud: Ec2FleetCloud, server: AwsServer, fleet: FleetId, fault: dict[str, Any]
) -> None:
    """Sent again, it would undo what somebody else changed since: look first, then decide."""
    fail(server, **fault, actions=["ModifyFleet", "TerminateInstances"])
    with pytest.raises(OutcomeUnknown):
        cloud.set_target_capacity(HOME, fleet, 2)
    with pytest.raises(OutcomeUnknown):
        cloud.terminate_instances(HOME, [InstanceId("i-00000000000000001")])
    assert len(sent(server, "ModifyFleet")) == len(sent(server, "TerminateInstances")) == 1


def test_reading_survives_lost_answers(
    cloud: Ec2FleetCloud, server: AwsServer, fleet: FleetId
) -> None:
    """A describe changes nothing: it is repeated without harm."""
    reads = ["DescribeFleets", "DescribeInstances"]
    fail(server, fault="no-answer", actions=reads, count=1)
    fail(server, fault="error", code="InternalError", actions=reads, count=1)
    state = cloud.observe([HOME])
    assert ([each.id for each in state.fleets], state.ignored) == ([fleet], ())


def test_denied_end_of_a_vanished_instance_ends_the_others(
    cloud: Ec2FleetCloud, server: AwsServer, fleet: FleetId
) -> None:
    """One instance that is gone must not keep 99 others running."""
    found = [instance.id for instance in cloud.observe([HOME]).instances if not instance.gone]
    ghost = InstanceId("i-00000000000000001")
    code = "UnauthorizedOperation"
    fail(server, fault="error", code=code, actions="TerminateInstances", vanished=True)
    cloud.terminate_instances(HOME, [ghost, found[0]])
    assert sent(server, "TerminateInstances") == ["error", ""]
    left = [instance.id for instance in cloud.observe([HOME]).instances if not instance.gone]
    assert found[0] not in left


def test_paced_calls_are_never_throttled(server: AwsServer, fleet: FleetId) -> None:
    """A plan of many fleets runs into EC2's buckets unless it keeps to them by itself."""
    server.world.put_faults(AwsFaults.model_validate({"throttling": {}}), seed=0)
    server.calls.clear()
    with closing(
        Ec2FleetCloud("analytics", Clients(request_limits=RequestLimits(patience_seconds=0.5)))
    ) as paced:
        for target in [3, 4] * 23:
            paced.set_target_capacity(HOME, fleet, target)
    assert sent(server, "ModifyFleet") == [""] * 46


@pytest.fixture
def kube() -> Iterator[Kube]:
    """A cluster with six nodes."""
    with ClusterServer() as server:
        made = Kube(server)
        for name in "abcdef":
            add_node(made, name)
        yield made
        made.close()


@contextmanager
def connected(kube: Kube) -> Iterator[KubernetesCluster]:
    """The real adapter, its caches filled."""
    transport = connect(str(kube.server.kubeconfig))
    with closing(KubernetesCluster(transport)) as made:
        made.observe()
        yield made


@pytest.fixture
def cluster(kube: Kube) -> Iterator[KubernetesCluster]:
    """The real adapter on a server that is well at first."""
    with connected(kube) as made:
        yield made


def trouble(kube: Kube, *faults: dict[str, Any]) -> None:
    """Put faults of requests in force for the program."""
    ours = [{**fault, "user_agent": "fleet-reconciler"} for fault in faults]
    parsed = KubernetesFaults.model_validate({"requests": ours})
    kube.server.front.faults.put(parsed.requests, kube.server.api.now(), seed=0)


def until_pods(cluster: KubernetesCluster, *names: str) -> None:
    """Wait until the caches hold these pods, event by event."""

    def seen() -> set[str]:
        return {pod.key.name for pod in cluster.observe().pods}

    until(
        lambda: f"an observation with {names}, not {seen()}",
        lambda: seen() == set(names),
        seconds=40,
        pause=cluster.wait_for_change,
    )


def test_busy_server_is_asked_again_when_it_says(kube: Kube, cluster: KubernetesCluster) -> None:
    """429 has changed nothing; a drain must not be given up for it."""
    trouble(kube, {"fault": "too-many-requests", "verbs": "patch", "retry_after": 1, "count": 2})
    assert cluster.taint_node(NODE, DRAINING)
    calls = kube.server.front.calls.calls(verb="patch", user_agent="fleet-reconciler")
    assert [call.fault for call in calls] == ["too-many-requests", "too-many-requests", ""]
    assert all((b.at - a.at).total_seconds() >= 1 for a, b in pairwise(calls))


def test_server_that_is_busy_for_long_is_left_to_the_next_cycle(
    kube: Kube, cluster: KubernetesCluster
) -> None:
    """An hour's Retry-After must not stop the loop for an hour."""
    trouble(kube, {"fault": "too-many-requests", "verbs": "patch", "retry_after": 3600})
    with pytest.raises(Throttled) as caught:
        cluster.taint_node(NODE, DRAINING)
    assert caught.value.retry_after_seconds == 3600


def test_conflict_is_read_again_and_a_lost_reply_is_not_repeated(
    kube: Kube, cluster: KubernetesCluster
) -> None:
    """A stale write is made anew from what is there; one that may be in force is looked at."""
    trouble(kube, {"fault": "conflict", "verbs": "patch", "count": 2})
    assert cluster.taint_node(NODE, DRAINING)
    trouble(kube, {"fault": "lost-reply", "verbs": "patch", "count": 1})
    with pytest.raises(OutcomeUnknown):
        cluster.untaint_node(NODE, DRAINING.key)
    assert not cluster.untaint_node(NODE, DRAINING.key)


def listed(kube: Kube) -> int:
    """How often the program listed pods."""
    calls = kube.server.front.calls.calls(verb="list", resource="pods", user_agent="fleet-recon")
    return len(calls)


def test_expired_watch_is_listed_anew(kube: Kube) -> None:
    """410 says that changes were missed: only a list brings them back."""
    trouble(kube, {"fault": "expired", "verbs": "watch", "resources": "pods", "count": 1})
    with connected(kube) as cluster:
        kube.core.create_namespaced_pod("default", pod_body("one"))
        until_pods(cluster, "one")
    assert listed(kube) == 2


def test_dropped_watch_goes_on_where_it_broke(kube: Kube) -> None:
    """Listing anew after each break would be the load that broke the server."""
    names = [f"pod-{n}" for n in range(6)]
    trouble(kube, {"fault": "dropped-watch", "resources": "pods", "events": 2, "count": 4})
    with connected(kube) as cluster:
        for name in names:
            kube.core.create_namespaced_pod("default", pod_body(name))
        until_pods(cluster, *names)
    assert listed(kube) == 1


def test_busy_server_is_watched_on_and_not_listed_anew(kube: Kube) -> None:
    """A server that answers 429 to watches would get ten lists on top."""
    busy = {"fault": "too-many-requests", "verbs": "watch", "retry_after": 1, "count": 1}
    trouble(kube, {**busy, "resources": "pods"})
    with connected(kube) as cluster:
        kube.core.create_namespaced_pod("default", pod_body("one"))
        until_pods(cluster, "one")
    assert listed(kube) == 1
    watches = kube.server.front.calls.calls(verb="watch", resource="pods")
    assert (watches[1].at - watches[0].at).total_seconds() >= 1

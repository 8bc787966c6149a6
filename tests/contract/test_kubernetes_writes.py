"""Writes of the real Cluster adapter that fail: refusals, conflicts, lost replies, nonsense."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import LeaseHome, connect
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.model.cluster import Taint
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import NodeName, PodKey
from tests.contract.kubernetes_api import kubeconfig
from tests.contract.scripted import Answer, Request, Script, json_answer, scripted_server

NODE = NodeName("n1")
POD = PodKey(namespace="web", name="api-1", uid="u")
TAINT = Taint(key="fleet-reconciler.io/draining", value="scale-in", effect="NoSchedule")


@pytest.fixture
def verbs(tmp_path: Path) -> Iterator[Callable[[Script], Verbs]]:
    """Makes the verbs of a server that follows a script."""
    opened: list[Any] = []

    def make(script: Script) -> Verbs:
        server = scripted_server(script)
        url = server.__enter__()
        transport = connect(kubeconfig(tmp_path, url))
        opened.append((server, transport))
        return Verbs(transport, LeaseHome(namespace="ops"))

    yield make
    for server, transport in opened:
        transport.close()
        server.__exit__(None, None, None)


def living(request: Request) -> Answer | None:
    """The pod lives; what else is asked is for the test's own answer."""
    return json_answer({"metadata": {"uid": "u"}}) if request.method == "GET" else None


def refusing(status: int, body: Any, **headers: str) -> Script:
    """The pod lives, its eviction is answered so."""
    return lambda request: living(request) or json_answer(body, status, **headers)


BUDGET = {
    "kind": "Status",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "details": {"causes": [{"reason": "DisruptionBudget"}]},
}

WEBHOOK = {
    "kind": "Status",
    "code": 429,
    "reason": "TooManyRequests",
    "message": 'admission webhook "evictions.example.com" denied the request: it moves the machine',
}


@pytest.mark.parametrize(
    ("status", "body", "headers", "error", "retry_after"),
    [
        (429, BUDGET, {}, Refused, None),
        (429, BUDGET, {"Retry_After": "10"}, Refused, 10.0),
        (429, {"message": "too many requests"}, {"Retry_After": "1"}, Throttled, 1.0),
        (429, {"message": "slow", "details": {"retryAfterSeconds": 3}}, {}, Throttled, 3.0),
        (429, WEBHOOK, {}, Refused, None),
        (429, WEBHOOK, {"Retry_After": "1"}, Refused, None),
        (
            500,
            {"message": "This pod has more than one PodDisruptionBudget, which is not supported"},
            {},
            Refused,
            None,
        ),
    ],
)
def test_refused_eviction_tells_budget_from_throttling(
    verbs: Callable[[Script], Verbs],
    status: int,
    body: Any,
    headers: dict[str, str],
    error: type[Refused | Throttled],
    retry_after: float | None,
) -> None:
    """A budget's no is waited out for minutes, a busy server's for a second."""
    with pytest.raises(error) as caught:
        verbs(refusing(status, body, **headers)).evict_pod(POD, 5)
    assert isinstance(caught.value, Refused | Throttled)
    assert caught.value.retry_after_seconds == retry_after


def test_deletion_that_a_webhook_denies_is_no_throttling(verbs: Callable[[Script], Verbs]) -> None:
    """Its bucket would be closed for the pods of the whole cluster."""
    with pytest.raises(Refused, match=r"evictions\.example\.com"):
        verbs(refusing(429, WEBHOOK)).delete_pod(POD, 5)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, Forbidden),
        (403, Forbidden),
        (422, Refused),
        (500, OutcomeUnknown),
        (503, Unavailable),
        (504, OutcomeUnknown),
    ],
)
def test_failed_write_says_whether_it_may_have_happened(
    verbs: Callable[[Script], Verbs], status: int, error: type[PortError]
) -> None:
    """What may have been done must be looked at before it is done again."""
    with pytest.raises(error):
        verbs(refusing(status, {"message": "m"})).evict_pod(POD, 5)


@pytest.mark.parametrize(
    "remove", [lambda verbs: verbs.evict_pod(POD, 5), lambda verbs: verbs.delete_pod(POD, 5)]
)
@pytest.mark.parametrize(
    ("after", "is_gone"),
    [
        ({"uid": "u"}, False),
        ({"uid": "u", "deletionTimestamp": "2026-11-28T12:00:00Z"}, True),
        ({"uid": "another"}, True),
    ],
)
def test_conflict_counts_as_done_only_when_the_pod_goes(
    verbs: Callable[[Script], Verbs],
    remove: Callable[[Verbs], bool],
    after: dict[str, str],
    is_gone: bool,
) -> None:
    """A pod that lives on, as its budget changed meanwhile, would wait for a later cycle."""
    refused: list[Request] = []

    def script(request: Request) -> Answer | None:
        if request.method == "GET":
            return json_answer({"metadata": after if refused else {"uid": "u"}})
        refused.append(request)
        return json_answer({"message": "the object has been modified"}, 409)

    if is_gone:
        assert not remove(verbs(script))
    else:
        with pytest.raises(Conflict, match="the object has been modified"):
            remove(verbs(script))


def test_lost_reply_to_a_write_is_an_unknown_outcome(verbs: Callable[[Script], Verbs]) -> None:
    """Retrying blindly could act on what came after."""
    with pytest.raises(OutcomeUnknown):
        verbs(living).evict_pod(POD, 5)


def test_lost_reply_to_a_read_changed_nothing(verbs: Callable[[Script], Verbs]) -> None:
    """A read may be repeated at will."""
    with pytest.raises(Unavailable):
        verbs(lambda _: None).counted_pods_on(NODE)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>please log in</html>",
        b"[]",
        b"{}",
        b"",
        b'{"login": "please"}',
        b'{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}',
        b'{"kind": "Status", "metadata": {"resourceVersion": "7"}, "status": "Success"}',
        b'{"kind": "PodList", "metadata": {}, "items": []}',
        b'{"kind": "ServiceList", "metadata": {"resourceVersion": "7"}, "items": []}',
        b'{"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []}',
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda verbs: verbs.taint_node(NODE, TAINT),
        lambda verbs: verbs.evict_pod(POD, 5),
        lambda verbs: verbs.counted_pods_on(NODE),
        lambda verbs: verbs.nodes(),
    ],
)
def test_answer_that_is_none_of_the_api_servers_is_no_answer(
    verbs: Callable[[Script], Verbs], ask: Callable[[Verbs], object], body: bytes
) -> None:
    """A proxy's page with status 200 would end the program, or end a node with its pods."""
    with pytest.raises(Unavailable):
        ask(verbs(lambda _: Answer(body=body)))


@pytest.mark.parametrize(
    "spec", ["soon", [1], {"taints": "soon"}, {"taints": {"key": "a"}}, {"taints": ["a", None]}]
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda verbs: verbs.taint_node(NODE, TAINT),
        lambda verbs: verbs.untaint_node(NODE, TAINT.key),
    ],
)
def test_node_whose_taints_are_none_is_no_answer(
    verbs: Callable[[Script], Verbs], ask: Callable[[Verbs], object], spec: Any
) -> None:
    """It ended the program; the action fails, and the next cycle decides afresh."""
    odd = json_answer({"metadata": {"resourceVersion": "1"}, "spec": spec})
    with pytest.raises(Unavailable, match="answered no object of Kubernetes"):
        ask(verbs(lambda _: odd))


def test_node_whose_annotations_are_none_is_no_answer(verbs: Callable[[Script], Verbs]) -> None:
    """As above, for a node that has not been seen before."""
    odd = json_answer({"metadata": {"resourceVersion": "1", "annotations": ["a"]}})
    with pytest.raises(Unavailable, match="answered no object of Kubernetes"):
        verbs(lambda _: odd).annotate_node(NODE, {"a": "b"})


def test_unreachable_server_changed_nothing(tmp_path: Path) -> None:
    """Nothing was sent: the action can simply be tried again."""
    with scripted_server(lambda _: None) as url:
        config = kubeconfig(tmp_path, url)
    transport = connect(config)
    with pytest.raises(Unavailable):
        Verbs(transport, LeaseHome(namespace="ops")).annotate_node(NODE, {"a": "b"})
    transport.close()


@pytest.mark.parametrize(("conflicts", "succeeds"), [(1, True), (100, False)])
def test_taint_is_tried_again_when_the_node_changed_meanwhile(
    verbs: Callable[[Script], Verbs], conflicts: int, succeeds: bool
) -> None:
    """Kubelets write to their nodes all the time; the retries must end all the same."""
    patches: list[dict[str, Any]] = []

    def script(request: Request) -> Answer:
        if request.method == "GET":
            metadata = {"uid": "u", "resourceVersion": f"v{len(patches)}"}
            return json_answer({"metadata": metadata, "spec": {}})
        patches.append(json.loads(request.body))
        return json_answer({}, 409 if len(patches) <= conflicts else 200)

    if succeeds:
        assert verbs(script).taint_node(NODE, TAINT)
        versions = [patch["metadata"]["resourceVersion"] for patch in patches]
        assert versions == ["v0", "v1"]
    else:
        with pytest.raises(Conflict):
            verbs(script).taint_node(NODE, TAINT)
        assert len(patches) < 10


class Nodes:
    """One node whose version counts up; says what was patched under which version."""

    def __init__(self) -> None:
        self.version = 7
        self.annotations: dict[str, str] = {}
        self.asked: list[str] = []

    def __call__(self, request: Request) -> Answer:
        """As the API server does it: a patch under another version is a conflict."""
        self.asked.append(request.method)
        if request.method == "PATCH":
            metadata = json.loads(request.body)["metadata"]
            if metadata.get("resourceVersion") not in {None, str(self.version)}:
                return json_answer({"message": "the object has been modified"}, 409)
            self.annotations |= metadata["annotations"]
            self.version += 1
        found = {"resourceVersion": str(self.version), "annotations": self.annotations}
        return json_answer({"metadata": {"name": NODE, "uid": "u", **found}})


STARTED = {"fleet-reconciler.io/drain-started": "2026-01-31T12:00:00Z"}
OPS = LeaseHome(namespace="ops")


def test_annotation_is_one_call_under_the_version_that_was_seen(tmp_path: Path) -> None:
    """Hundreds of timers a cycle would be twice as many calls."""
    node = Nodes()
    with scripted_server(node) as url:
        transport = connect(kubeconfig(tmp_path, url))
        Verbs(transport, OPS, lambda _: "7").annotate_node(NODE, STARTED)
        transport.close()
    assert (node.asked, node.annotations) == (["PATCH"], STARTED)


def test_annotation_on_a_node_that_changed_is_tried_on_what_it_is_now(tmp_path: Path) -> None:
    """A heartbeat in between must not cost a cycle."""
    node = Nodes()
    with scripted_server(node) as url:
        transport = connect(kubeconfig(tmp_path, url))
        Verbs(transport, OPS, lambda _: "6").annotate_node(NODE, STARTED)
        assert node.asked == ["PATCH", "GET", "PATCH"]
        Verbs(transport, OPS).annotate_node(NODE, STARTED)
        assert node.asked[3:] == ["GET"], "it says so already"
        transport.close()


def test_annotation_of_a_leader_that_was_stopped_meanwhile_is_refused(tmp_path: Path) -> None:
    """It wrote `drain-started` 22 s late, and the new leader counted a drain that never failed."""
    node, leads = Nodes(), [True]
    with scripted_server(node) as url:
        # It leads when it begins to write; by the second look it has been stopped for 22 s.
        fence = lambda: leads.pop() if leads else False  # noqa: E731 - a script
        transport = connect(kubeconfig(tmp_path, url), fence=fence)
        verbs = Verbs(transport, OPS, lambda _: "7")
        node.version = 9  # another leader has changed the node
        with pytest.raises(Refused, match="is not the leader"):
            verbs.annotate_node(NODE, STARTED)
        transport.close()
    assert node.annotations == {}


def test_annotation_on_a_node_that_changes_all_the_time_is_given_up(tmp_path: Path) -> None:
    """Two writers that chase each other would keep the loop for good."""

    def conflict(request: Request) -> Answer:
        if request.method == "PATCH":
            return json_answer({"message": "modified"}, 409)
        return json_answer({"metadata": {"name": NODE, "uid": "u", "resourceVersion": "1"}})

    with scripted_server(conflict) as url:
        transport = connect(kubeconfig(tmp_path, url))
        with pytest.raises(Conflict):
            Verbs(transport, OPS).annotate_node(NODE, STARTED)
        transport.close()


@pytest.mark.parametrize("item", [1, None, {"metadata": {"name": "p"}, "spec": "lost"}])
def test_last_check_does_not_pass_over_what_looks_like_a_pod(
    verbs: Callable[[Script], Verbs], item: Any
) -> None:
    """An item without a readable node name was left out, and its node would have been ended."""
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [item]}
    with pytest.raises(Unavailable, match="the list cannot be read"):
        verbs(lambda _: json_answer(listed)).counted_pods_on(NODE)


def test_last_check_counts_a_pod_that_cannot_be_read(tmp_path: Path) -> None:
    """The plan kept the node of such a pod; the check before its end took it for finished."""
    broken = {
        "metadata": {"name": "p", "namespace": "web", "uid": "u"},
        "spec": {"nodeName": NODE, "priority": "high"},
        "status": {"phase": "Succeeded"},
    }
    listed = {"metadata": {"resourceVersion": "1"}, "items": [broken]}
    with scripted_server(lambda _: json_answer(listed)) as url:
        transport = connect(kubeconfig(tmp_path, url))
        pods = Verbs(transport, OPS).counted_pods_on(NODE)
        transport.close()
    assert [pod.name for pod in pods] == ["p"]

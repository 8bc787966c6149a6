"""The real Cluster adapter on bad days: refusals, lost replies, stale and broken watches."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster, connect
from reconciler.adapters.kubernetes.kinds import KINDS
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.model.cluster import Taint
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    InputError,
    ObservationError,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import InstanceId, NodeName, PodKey
from reconciler.model.snapshot import ClusterState
from tests.contract.scripted import Answer, Request, Script, json_answer, scripted_server

NODE = NodeName("n1")
POD = PodKey(namespace="web", name="api-1", uid="u")
TAINT = Taint(key="fleet-reconciler.io/draining", value="scale-in", effect="NoSchedule")


def kubeconfig(folder: Path, url: str) -> str:
    """A kubeconfig for a server without TLS."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.fixture
def verbs(tmp_path: Path) -> Iterator[Callable[[Script], Verbs]]:
    """Makes the verbs of a server that follows a script."""
    opened: list[Any] = []

    def make(script: Script) -> Verbs:
        server = scripted_server(script)
        url = server.__enter__()
        transport = connect(kubeconfig(tmp_path, url))
        opened.append((server, transport))
        return Verbs(transport, "ops")

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


@pytest.mark.parametrize(
    ("status", "body", "headers", "error", "retry_after"),
    [
        (429, BUDGET, {}, Refused, None),
        (429, BUDGET, {"Retry_After": "10"}, Refused, 10.0),
        (429, {"message": "too many requests"}, {"Retry_After": "1"}, Throttled, 1.0),
        (429, {"message": "slow", "details": {"retryAfterSeconds": 3}}, {}, Throttled, 3.0),
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


def test_lost_reply_to_a_write_is_an_unknown_outcome(verbs: Callable[[Script], Verbs]) -> None:
    """Retrying blindly could act on what came after."""
    with pytest.raises(OutcomeUnknown):
        verbs(living).evict_pod(POD, 5)


def test_lost_reply_to_a_read_changed_nothing(verbs: Callable[[Script], Verbs]) -> None:
    """A read may be repeated at will."""
    with pytest.raises(Unavailable):
        verbs(lambda _: None).counted_pods_on(NODE)


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"[]", b"{}", b""])
@pytest.mark.parametrize(
    "ask",
    [
        lambda verbs: verbs.taint_node(NODE, TAINT),
        lambda verbs: verbs.evict_pod(POD, 5),
        lambda verbs: verbs.counted_pods_on(NODE),
        lambda verbs: verbs.joined([InstanceId("i-1")]),
    ],
)
def test_answer_that_is_none_of_the_api_servers_is_no_answer(
    verbs: Callable[[Script], Verbs], ask: Callable[[Verbs], object], body: bytes
) -> None:
    """A proxy's page with status 200 would end the program, or empty a node."""
    with pytest.raises(Unavailable):
        ask(verbs(lambda _: Answer(body=body)))


def test_unreachable_server_changed_nothing(tmp_path: Path) -> None:
    """Nothing was sent: the action can simply be tried again."""
    with scripted_server(lambda _: None) as url:
        config = kubeconfig(tmp_path, url)
    transport = connect(config)
    with pytest.raises(Unavailable):
        Verbs(transport, "ops").annotate_node(NODE, {"a": "b"})
    transport.close()


@pytest.mark.parametrize(("conflicts", "succeeds"), [(1, True), (100, False)])
def test_taint_is_tried_again_when_the_node_changed_meanwhile(
    verbs: Callable[[Script], Verbs], conflicts: int, succeeds: bool
) -> None:
    """Kubelets write to their nodes all the time; the retries must end all the same."""
    patches: list[dict[str, Any]] = []

    def script(request: Request) -> Answer:
        if request.method == "GET":
            version = f"v{len(patches)}"
            return json_answer({"metadata": {"resourceVersion": version}, "spec": {}})
        patches.append(json.loads(request.body))
        return json_answer({}, 409 if len(patches) <= conflicts else 200)

    if succeeds:
        assert verbs(script).taint_node(NODE, TAINT)
        versions = [each["metadata"]["resourceVersion"] for each in patches]
        assert versions == ["v0", "v1"]
    else:
        with pytest.raises(Conflict):
            verbs(script).taint_node(NODE, TAINT)
        assert len(patches) < 10


@pytest.mark.parametrize("text", ["", "5", "a: [", "clusters: 5", "apiVersion: v1\nkind: Config\n"])
def test_broken_kubeconfig_is_an_input_error(tmp_path: Path, text: str) -> None:
    """The client's own exceptions name neither file nor cure."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        connect(str(path))
    assert caught.value.where == str(path)


class ApiScript:
    """Lists and watches of all kinds, pods as the test wants them."""

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] = []
        self.events: list[tuple[bytes, ...]] = []
        """What successive watches of pods say."""
        self.lists = 0
        self.watches = 0
        self.asked: list[str] = []
        self.hold = threading.Event()

    def __call__(self, request: Request) -> Answer:
        """Answer one request."""
        is_pods = request.path.startswith("/api/v1/pods")
        if "watch=1" not in request.path:
            self.lists += is_pods
            items = self.pods if is_pods else []
            return json_answer({"metadata": {"resourceVersion": "7"}, "items": items})
        lines: tuple[bytes, ...] = ()
        if is_pods:
            self.watches += 1
            self.asked.append(request.path)
            lines = self.events.pop(0) if self.events else ()
            if lines and self.events:
                return Answer(lines=lines)
        return Answer(lines=lines, hold=self.hold)


def pod_json(version: str = "1", **status: Any) -> dict[str, Any]:
    """A pod bound to n1."""
    return {
        "metadata": {"name": "p", "namespace": "web", "uid": "u", "resourceVersion": version},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", **status},
    }


def event(kind: str, found: Any) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": found}).encode()


@contextmanager
def watching(
    tmp_path: Path, script: Script, *, stale_seconds: float = 60, sync_seconds: float = 60
) -> Iterator[KubernetesCluster]:
    """A cluster that watches a scripted server."""
    with scripted_server(script) as url:
        cluster = KubernetesCluster(
            connect(kubeconfig(tmp_path, url)),
            stale_seconds=stale_seconds,
            sync_seconds=sync_seconds,
        )
        try:
            yield cluster
        finally:
            if isinstance(script, ApiScript):
                script.hold.set()
            cluster.close()


def until(cluster: KubernetesCluster, holds: Callable[[ClusterState], bool]) -> ClusterState:
    """Observe at each change until something holds."""
    for _ in range(100):
        state = cluster.observe()
        if holds(state):
            return state
        cluster.wait_for_change(0.1)
    raise AssertionError("it never came to that")


def test_expired_watch_lists_again(tmp_path: Path) -> None:
    """A cache that misses what happened in between would stay wrong for good."""
    script = ApiScript()
    expired = {"kind": "Status", "code": 410, "message": "too old resource version"}
    script.events = [(event("ERROR", expired),), (event("ADDED", pod_json("8")),)]
    with watching(tmp_path, script) as cluster:
        until(cluster, lambda state: len(state.pods) == 1)
    assert script.lists >= 2


def test_watch_goes_on_from_the_last_version_it_heard(tmp_path: Path) -> None:
    """Starting over at the list's version would replay or miss events."""
    script = ApiScript()
    bookmark = {"kind": "Pod", "metadata": {"resourceVersion": "42"}}
    script.events = [(event("BOOKMARK", bookmark),), (event("ADDED", pod_json("43")),)]
    with watching(tmp_path, script) as cluster:
        until(cluster, lambda state: len(state.pods) == 1)
    assert "resourceVersion=7" in script.asked[0]
    assert "resourceVersion=42" in script.asked[1]
    assert "allowWatchBookmarks=true" in script.asked[1]


def test_unreadable_pod_of_a_watch_keeps_its_node(tmp_path: Path) -> None:
    """One malformed object must neither end the watch nor empty a node."""
    script = ApiScript()
    broken = {**pod_json("8"), "spec": {"nodeName": "n1", "priority": "high"}}
    script.events = [(event("ADDED", broken),)]
    with watching(tmp_path, script) as cluster:
        state = until(cluster, lambda state: len(state.pods) == 1)
    assert state.pods[0].unreadable
    assert [(each.code, each.kind, each.name) for each in state.ignored] == [
        ("unreadable", "Pod", "p")
    ]


def test_heartbeat_does_not_wake_the_loop(tmp_path: Path) -> None:
    """A large cluster has hundreds of them a second."""
    script = ApiScript()
    script.pods = [pod_json("1")]
    ready = [{"type": "Ready", "status": "True"}]
    script.events = [(event("MODIFIED", pod_json("8", conditions=ready)),)]
    with watching(tmp_path, script) as cluster:
        until(cluster, lambda state: bool(state.pods) and state.pods[0].ready)
        assert not cluster.wait_for_change(0.2)


def test_deleted_pod_leaves_the_cache(tmp_path: Path) -> None:
    """A pod that is remembered for ever holds its node for ever."""
    script = ApiScript()
    script.pods = [pod_json("1")]
    script.events = [(event("DELETED", pod_json("8")),)]
    with watching(tmp_path, script) as cluster:
        until(cluster, lambda state: not state.pods and script.watches > 0)


def test_silent_server_makes_observations_fail(tmp_path: Path) -> None:
    """Deciding from an old picture removes nodes that are in use by now."""
    script = ApiScript()
    with watching(tmp_path, script, stale_seconds=5) as cluster:
        until(cluster, lambda _: script.watches > 0)
        with pytest.raises(ObservationError, match="not heard of"):
            until(cluster, lambda _: False)
        assert not cluster.synced


def test_forbidden_list_is_named_in_the_failure(tmp_path: Path) -> None:
    """An operator with a missing right must read which one."""
    refuse: Script = lambda _: json_answer({"message": "pods is forbidden"}, 403)  # noqa: E731 - a script
    with (
        watching(tmp_path, refuse, sync_seconds=0.5) as cluster,
        pytest.raises(ObservationError, match=r"no list of Pod yet .*pods is forbidden"),
    ):
        cluster.observe()


def test_pages_of_a_list_add_up(tmp_path: Path) -> None:
    """Only the first thousand pods would be seen."""

    def script(request: Request) -> Answer:
        if "watch=1" in request.path or not request.path.startswith("/api/v1/pods"):
            return ApiScript()(request) if "watch=1" not in request.path else Answer(lines=())
        second = "continue=more" in request.path
        pod = {"metadata": {"name": "b" if second else "a", "namespace": "web"}, "spec": {}}
        metadata = {"resourceVersion": "7", **({} if second else {"continue": "more"})}
        return json_answer({"metadata": metadata, "items": [pod]})

    with watching(tmp_path, script) as cluster:
        assert [pod.key.name for pod in cluster.observe().pods] == ["a", "b"]


def test_page_that_comes_too_late_is_made_up_by_a_whole_list(tmp_path: Path) -> None:
    """A list that outlives its snapshot on the server would never be complete."""

    def script(request: Request) -> Answer:
        if "watch=1" in request.path or not request.path.startswith("/api/v1/pods"):
            return ApiScript()(request) if "watch=1" not in request.path else Answer(lines=())
        if "continue=" in request.path:
            return json_answer({"kind": "Status", "code": 410}, 410)
        pods = [{"metadata": {"name": name, "namespace": "web"}, "spec": {}} for name in "ab"]
        paged = "limit=" in request.path
        metadata = {"resourceVersion": "7", **({"continue": "more"} if paged else {})}
        return json_answer({"metadata": metadata, "items": pods[:1] if paged else pods})

    with watching(tmp_path, script) as cluster:
        assert [pod.key.name for pod in cluster.observe().pods] == ["a", "b"]


def test_list_that_expired_once_is_taken_in_pages_again(tmp_path: Path) -> None:
    """A whole list of a large cluster, held at once, is more memory than the program may have."""
    asked: list[str] = []

    def script(request: Request) -> Answer:
        if "watch=1" in request.path or not request.path.startswith("/api/v1/pods"):
            return ApiScript()(request) if "watch=1" not in request.path else Answer(lines=())
        asked.append(request.path)
        if "continue=" in request.path and len(asked) == 2:
            return json_answer({"kind": "Status", "code": 410}, 410)
        second = "continue=more" in request.path
        pod = {"metadata": {"name": "b" if second else "a", "namespace": "web"}, "spec": {}}
        metadata = {"resourceVersion": "7", **({} if second else {"continue": "more"})}
        return json_answer({"metadata": metadata, "items": [pod]})

    with watching(tmp_path, script) as cluster:
        assert [pod.key.name for pod in cluster.observe().pods] == ["a", "b"]
    assert ["limit=" in path for path in asked[:4]] == [True] * 4


def test_kubeconfig_variable_beats_the_pod_one_happens_to_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox on a build machine in Kubernetes would act on the build cluster."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, "http://127.0.0.1:1"))
    transport = connect()
    assert transport.host == "http://127.0.0.1:1"
    transport.close()


def test_closed_cluster_leaves_no_thread(tmp_path: Path) -> None:
    """A program that is asked to stop would hang on its watches."""
    before = set(threading.enumerate())
    with watching(tmp_path, ApiScript()) as cluster:
        cluster.observe()
        started = set(threading.enumerate()) - before
        assert {thread.name for thread in started} >= {f"watch-{kind.name}" for kind in KINDS}
    assert not [thread.name for thread in started if thread.is_alive()]

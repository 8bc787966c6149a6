"""Watches of the real Cluster adapter under failures: expired, silent, forbidden, malformed."""

import json
import re
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster, connect
from reconciler.adapters.kubernetes.cache import UNREACHED_MAX, Cache
from reconciler.adapters.kubernetes.changes import asks, is_new_demand, matters
from reconciler.adapters.kubernetes.cluster import STALE_SECONDS, SYNC_SECONDS
from reconciler.adapters.kubernetes.kinds import KINDS
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.model.actions import INTERRUPTION
from reconciler.model.errors import ObservationError
from reconciler.model.frozen import FrozenMap
from reconciler.records.kubernetes import ClusterObject, ObjectDecoder
from reconciler.sandbox.cluster.front.certificate import make_certificate
from tests.builders import make_node
from tests.contract.kubernetes_api import (
    LONG_SECONDS,
    ApiScript,
    event,
    kubeconfig,
    pod_json,
    until,
    watching,
)
from tests.contract.scripted import Script, json_answer, scripted_server

NEVER_SECONDS = 10_000.0
"""Longer than any test may take."""


def test_expired_watch_lists_again(tmp_path: Path) -> None:
    """A cache that misses what happened in between would stay wrong for good."""
    script = ApiScript()
    expired = {"kind": "Status", "code": 410, "message": "too old resource version"}
    script.events = [(event("ERROR", expired),), (event("ADDED", pod_json("8")),)]
    with watching(tmp_path, script) as cluster:
        until(cluster, lambda state: len(state.pods) == 1)
    assert script.lists >= 2


def test_watch_continues_from_the_last_version_it_received(tmp_path: Path) -> None:
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
    script, seconds = ApiScript(), [0.0]
    with watching(tmp_path, script, awake_seconds=lambda: seconds[0]) as cluster:
        until(cluster, lambda _: script.watches > 0)
        seconds[0] = STALE_SECONDS + 1
        with pytest.raises(ObservationError, match="no answer about"):
            cluster.observe()
        assert not cluster.synced


def test_forbidden_list_is_named_in_the_failure(tmp_path: Path) -> None:
    """An operator with a missing right must read which one."""
    refuse: Script = lambda _: json_answer({"message": "pods is forbidden"}, 403)  # noqa: E731 - a script
    with watching(tmp_path, refuse, sync_seconds=0.1) as cluster:
        said, end = "", time.monotonic() + LONG_SECONDS
        while "forbidden" not in said and time.monotonic() < end:
            with pytest.raises(ObservationError) as caught:
                cluster.observe()
            said = str(caught.value)
    assert re.search("no list of Pod yet .*pods is forbidden", said), said


def test_closed_cluster_leaves_no_thread(tmp_path: Path) -> None:
    """A program that is asked to stop would hang on its watches."""
    before = set(threading.enumerate())
    with watching(tmp_path, ApiScript()) as cluster:
        cluster.observe()
        started = set(threading.enumerate()) - before
        assert {thread.name for thread in started} >= {f"watch-{kind.name}" for kind in KINDS}
    assert not [thread.name for thread in started if thread.is_alive()]


def test_server_that_refuses_connections_is_reported_at_once_and_once(tmp_path: Path) -> None:
    """`plan` waited for over a minute and then printed the same failure for each of ten kinds."""
    cluster = KubernetesCluster(connect(kubeconfig(tmp_path, "http://127.0.0.1:1")))
    began = time.monotonic()
    with closing(cluster), pytest.raises(ObservationError) as caught:
        cluster.observe()
    assert time.monotonic() - began < SYNC_SECONDS / 2
    assert str(caught.value) == (
        "http://127.0.0.1:1: no list of any kind yet (connection refused) "
        "(check kubeconfig and network; nothing is decided until the API server answers)"
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "no list of any kind yet (401 no)"),
        (403, "no list of Pod yet (GET /api/v1/pods: 403 "),
    ],
)
def test_refused_credentials_end_the_wait_for_the_first_lists(
    tmp_path: Path, status: int, said: str
) -> None:
    """A minute of waiting brings no other credentials, and ten equal reasons hide the one."""
    refuse: Script = lambda _: json_answer({"message": "no"}, status)  # noqa: E731 - a script
    forever = watching(tmp_path, refuse, sync_seconds=NEVER_SECONDS)
    with forever as cluster, pytest.raises(ObservationError) as caught:
        cluster.observe()
    assert said in str(caught.value)


def test_certificate_that_is_not_trusted_is_reported_once_and_soon(tmp_path: Path) -> None:
    """It reads as a failure of each of ten kinds, in the words of the client's classes."""
    context = make_certificate(datetime.now(UTC)).server_context()  # noqa: TID251 - as TLS
    with scripted_server(ApiScript(), context) as url:
        cluster = KubernetesCluster(connect(kubeconfig(tmp_path, url)), sync_seconds=NEVER_SECONDS)
        with closing(cluster), pytest.raises(ObservationError) as caught:
            cluster.observe()
    assert "no list of any kind yet (its certificate is not accepted: self" in str(caught.value)


def test_server_that_comes_up_late_is_waited_for(tmp_path: Path) -> None:
    """A control plane that is started together with the program must not end it."""
    cache = Cache("Pod", ThreadedChangeSignal())
    for _ in range(UNREACHED_MAX):
        cache.failed("connection refused", lasting=True)
    assert not cache.wait_synced(LONG_SECONDS)
    cache.note_answer()
    waiter = threading.Thread(target=cache.wait_synced, args=(LONG_SECONDS,), daemon=True)
    waiter.start()
    assert waiter.is_alive(), "it waits again"
    cache.replace({})
    waiter.join(LONG_SECONDS)
    assert cache.synced


def test_only_a_pod_that_waits_for_a_node_is_new_demand(tmp_path: Path) -> None:
    """Our own annotations and evictions come back as changes too, and nobody waits for those."""
    script = ApiScript()
    bound, waiting = pod_json("8"), pod_json("9")
    waiting["metadata"]["name"] = "q"
    del waiting["spec"]["nodeName"]
    script.events = [(event("ADDED", bound),), (event("ADDED", waiting),)]
    with watching(tmp_path, script) as cluster:
        until(cluster, lambda state: len(state.pods) == 2)
        assert not cluster.demand_waits(), "it was observed"
    assert not is_new_demand(None, _pod(bound))
    assert is_new_demand(None, _pod(waiting))
    assert not is_new_demand(_pod(waiting), _pod(waiting))
    assert not is_new_demand(_pod(waiting), _pod(bound))
    assert not asks(_pod(waiting), _pod(bound))
    assert asks(None, _pod(waiting))


def test_pod_of_another_scheduler_asks_for_a_plan_once_that_refuses_it() -> None:
    """A plan that is made before leaves the pod out; it would wait for the next interval."""
    left = pod_json("8")
    del left["spec"]["nodeName"]
    left["spec"]["schedulerName"] = "volcano"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    refused = {**left, "status": {**left.get("status", {}), "conditions": [condition]}}
    assert not asks(None, _pod(left))
    assert asks(_pod(left), _pod(refused))
    assert matters(_pod(left), _pod(refused))


def test_announced_end_of_a_node_asks_for_a_plan_and_other_changes_of_it_do_not() -> None:
    """Two minutes are left; a node that came, or our own taint on one, frees no pod that waits."""
    node = make_node("a")
    noticed = replace(node, annotations=FrozenMap({INTERRUPTION: "terminate/2026-01-31T12:02:00Z"}))
    assert asks(node, noticed)
    assert asks(None, noticed)
    assert not asks(None, node)
    assert not asks(node, replace(node, unschedulable=True))
    assert not asks(noticed, replace(noticed, unschedulable=True))
    assert not asks(noticed, node)


def _pod(found: dict[str, Any]) -> ClusterObject | None:
    decoded = ObjectDecoder().decode("Pod", json.dumps(found).encode())
    return None if decoded is None else decoded.value

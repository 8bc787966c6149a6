"""Watches: nothing lost, nothing twice, and a clear word when the past is gone."""

from typing import Any

from tests.sandbox.cluster.conftest import MakeCluster
from tests.sandbox.cluster.kube import Kube, pod_body

NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def make_config_map(kube: Kube, name: str, **labels: str) -> Any:
    """An object that nothing in the cluster touches."""
    body = {"metadata": {"name": name, "labels": labels}}
    return kube.ask("POST", CONFIG_MAPS, body).body["metadata"]


def watched(kube: Kube, query: str) -> list[dict[str, Any]]:
    """All events of a watch of one second."""
    answer = kube.ask("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&{query}")
    assert answer.code == 200
    events: list[dict[str, Any]] = answer.body
    return events


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


def test_watch_from_version_tells_exactly_what_came_after(kube: Kube) -> None:
    """A cache that misses one event is wrong for ever."""
    make_config_map(kube, "a")
    version = make_config_map(kube, "b")["resourceVersion"]
    make_config_map(kube, "c")
    kube.ask("DELETE", f"{CONFIG_MAPS}/a")
    assert told(watched(kube, f"resourceVersion={version}")) == [("ADDED", "c"), ("DELETED", "a")]


def test_watch_without_version_tells_what_exists(kube: Kube) -> None:
    """A `kubectl get --watch` begins so."""
    make_config_map(kube, "a")
    assert told(watched(kube, "")) == [("ADDED", "a")]


def test_object_that_leaves_the_selection_is_deleted_for_the_watch(kube: Kube) -> None:
    """A cache of selected objects would keep what is no longer selected."""
    version = make_config_map(kube, "a", on="yes")["resourceVersion"]
    for value in ("no", "yes"):
        kube.ask(
            "PATCH",
            f"{CONFIG_MAPS}/a",
            {"metadata": {"labels": {"on": value}}},
            content_type="application/merge-patch+json",
        )
    events = watched(kube, f"labelSelector=on%3Dyes&resourceVersion={version}")
    assert told(events) == [("DELETED", "a"), ("ADDED", "a")]
    assert events[0]["object"]["metadata"]["labels"] == {"on": "yes"}


def test_quiet_watch_gets_bookmarks_when_it_asks(make_cluster: MakeCluster) -> None:
    """Without bookmarks a quiet watch falls behind the log and must list again."""
    kube = make_cluster(bookmark_seconds=0.2)
    version = int(make_config_map(kube, "a")["resourceVersion"])
    events = watched(kube, f"allowWatchBookmarks=true&resourceVersion={version}")
    assert {e["type"] for e in events} == {"BOOKMARK"}
    assert all(int(e["object"]["metadata"]["resourceVersion"]) >= version for e in events)
    assert not watched(kube, f"resourceVersion={version}")


def test_watch_from_compacted_version_is_expired(make_cluster: MakeCluster) -> None:
    """A client that lags must list again instead of waiting for what never comes."""
    kube = make_cluster(watch_log_length=2)
    version = make_config_map(kube, "a")["resourceVersion"]
    for name in "bcde":
        make_config_map(kube, name)
    (event,) = watched(kube, f"resourceVersion={version}")
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )


def test_initial_events_end_with_marked_bookmark(kube: Kube) -> None:
    """Newer clients fill their caches by watching alone."""
    make_config_map(kube, "a")
    events = watched(
        kube,
        "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
    )
    assert told(events[:1]) == [("ADDED", "a")]
    annotations = events[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_official_client_follows_changes_while_they_happen(kube: Kube) -> None:
    """The capacity loop is woken by such watches."""
    kube.core.create_namespaced_pod("default", pod_body("p"))
    pod = kube.until(kube.core.list_namespaced_pod, lambda p: bool(p.status.conditions), "default")
    assert pod.status.conditions[0].type == "PodScheduled"


def test_end_of_server_ends_its_watches(make_cluster: MakeCluster) -> None:
    """A stop that waits for clients would hang the sandbox."""
    kube = make_cluster()
    response = kube.core.list_node(watch=True, _preload_content=False)
    kube.server.stop()
    assert response.read() == b""
    response.release_conn()
    kube.server = type(kube.server)().start()

"""The verbs: what a client gets for what it sends."""

from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from tests.sandbox.cluster.conftest import MakeCluster
from tests.sandbox.cluster.kube import Kube, pod_body, workload

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def refusal(call: Any, *args: Any, **kwargs: Any) -> ApiException:
    """The error that a call of the client ends with."""
    with pytest.raises(ApiException) as caught:
        call(*args, **kwargs)
    error: ApiException = caught.value
    return error


def test_pod_created_bare_gets_defaults_of_api_server(kube: Kube) -> None:
    """Planning reads defaults; without them priorities and grace periods would be guessed."""
    pod = kube.core.create_namespaced_pod("default", pod_body("p"))
    assert pod.status.phase == "Pending"
    assert pod.spec.priority == 0
    assert pod.spec.termination_grace_period_seconds == 30
    assert pod.spec.scheduler_name == "default-scheduler"
    assert {t.key for t in pod.spec.tolerations} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }


def test_update_with_stale_version_is_conflict(kube: Kube) -> None:
    """Two writers would overwrite each other silently."""
    node = kube.core.create_node({"metadata": {"name": "n"}})
    kube.core.patch_node("n", {"metadata": {"labels": {"a": "b"}}})
    error = refusal(kube.core.replace_node, "n", node)
    assert (error.status, error.reason) == (409, "Conflict")
    assert "the object has been modified" in str(error.body)


def test_patch_with_stale_version_is_conflict(kube: Kube) -> None:
    """A check of the live object before acting relies on it."""
    old = kube.core.create_node({"metadata": {"name": "n"}}).metadata.resource_version
    kube.core.patch_node("n", {"metadata": {"labels": {"a": "b"}}})
    patch = {"metadata": {"resourceVersion": old, "labels": {"a": "c"}}}
    assert refusal(kube.core.patch_node, "n", patch).status == 409


def test_delete_with_foreign_uid_is_conflict(kube: Kube) -> None:
    """A pod of the same name that came later would be killed."""
    kube.core.create_namespaced_pod("default", pod_body("p"))
    body = {"preconditions": {"uid": "other"}}
    assert refusal(kube.core.delete_namespaced_pod, "p", "default", body=body).status == 409


def test_request_without_token_is_unauthorized(kube: Kube) -> None:
    """Any local process could change the cluster."""
    answer = kube.ask("GET", PODS, token="wrong")
    assert answer.code == 401
    assert answer.body["kind"] == "Status"
    assert kube.ask("GET", "/readyz", token="wrong").body == "ok"


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (pod_body("Upper"), 422, "Invalid"),
        ({"metadata": {"name": "p"}, "spec": {"containers": []}}, 422, "Invalid"),
        (pod_body("p", cpu="many"), 422, "Invalid"),
        (pod_body("p", priorityClassName="none"), 403, "Forbidden"),
        (pod_body("p", tolerations="all"), 400, "BadRequest"),
        ({"metadata": {"name": "p", "labels": ["a"]}, "spec": {}}, 400, "BadRequest"),
        ({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "p"}}, 400, "BadRequest"),
    ],
)
def test_bad_pod_is_refused_with_status(
    kube: Kube, body: dict[str, Any], code: int, reason: str
) -> None:
    """Bad manifests would show up much later, as pods that nothing can plan for."""
    answer = kube.ask("POST", PODS, body)
    assert (answer.code, answer.body["reason"], answer.body["code"]) == (code, reason, code)


def test_null_means_not_said(kube: Kube) -> None:
    """Clients that write every field send nulls for most of them."""
    body = pod_body("p", tolerations=None, nodeSelector=None)
    body["metadata"]["creationTimestamp"] = None
    answer = kube.ask("POST", PODS, body)
    assert answer.code == 201
    assert "nodeSelector" not in answer.body["spec"]
    assert len(answer.body["spec"]["tolerations"]) == 2


def test_object_in_missing_namespace_is_not_found(kube: Kube) -> None:
    """Events of a deleted namespace would pile up for ever."""
    error = refusal(kube.core.create_namespaced_pod, "nowhere", pod_body("p"))
    assert error.status == 404
    assert 'namespaces \\"nowhere\\" not found' in str(error.body)


def test_list_in_pages_shows_one_moment(kube: Kube) -> None:
    """Pods created while paging would appear twice or push others out."""
    for name in ("a", "b", "c", "d", "e"):
        kube.core.create_namespaced_pod("default", pod_body(name))
    first = kube.core.list_namespaced_pod("default", limit=2)
    kube.core.create_namespaced_pod("default", pod_body("bb"))
    assert first.metadata.remaining_item_count == 3
    token = first.metadata._continue
    second = kube.core.list_namespaced_pod("default", limit=10, _continue=token)
    assert [p.metadata.name for p in (*first.items, *second.items)] == ["a", "b", "c", "d", "e"]
    assert second.metadata.resource_version == first.metadata.resource_version


def test_page_token_that_is_forgotten_is_expired(kube: Kube) -> None:
    """A client must know that it has to list again."""
    answer = kube.ask("GET", f"{PODS}?limit=1&continue=unknown")
    assert (answer.code, answer.body["reason"]) == (410, "Expired")


def test_list_items_carry_no_kind_as_with_api_server(kube: Kube) -> None:
    """Decoders that rely on it would break on the first real cluster."""
    kube.core.create_namespaced_pod("default", pod_body("p"))
    body = kube.ask("GET", PODS).body
    assert body["kind"] == "PodList"
    assert "kind" not in body["items"][0]


def test_selectors_choose_by_labels_and_fields(make_cluster: MakeCluster) -> None:
    """Drains list the pods of one node; a wrong selection evicts elsewhere."""
    kube = make_cluster(pod_gc_seconds=60)
    kube.core.create_namespaced_pod("default", pod_body("p", nodeName="n1"))
    kube.core.create_namespaced_pod("default", pod_body("q"))
    names = [
        [i.metadata.name for i in kube.core.list_pod_for_all_namespaces(**selection).items]
        for selection in (
            {"field_selector": "spec.nodeName=n1"},
            {"field_selector": "spec.nodeName!=n1,status.phase=Pending"},
            {"label_selector": "app in (q, z)"},
            {"label_selector": "app,app!=q"},
        )
    ]
    assert names == [["p"], ["q"], ["q"], ["p"]]
    error = refusal(kube.core.list_node, field_selector="spec.podCIDR=x")
    assert (error.status, "field label not supported" in str(error.body)) == (400, True)


def test_strategic_patch_merges_lists_by_key_and_replaces_taints(kube: Kube) -> None:
    """NodeSpec.taints has no patch strategy: a patch with one taint drops the others."""
    taints = [{"key": key, "effect": "NoSchedule"} for key in ("x", "y")]
    kube.core.create_node({"metadata": {"name": "n"}, "spec": {"taints": taints}})
    node = kube.core.patch_node("n", {"spec": {"taints": [{"key": "z", "effect": "NoExecute"}]}})
    assert [t.key for t in node.spec.taints] == ["z"]
    kube.apps.create_namespaced_deployment("default", workload("w", 0))
    container = {"name": "side", "image": "y:1"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    changed = kube.apps.patch_namespaced_deployment("w", "default", patch)
    assert {c.name for c in changed.spec.template.spec.containers} == {"c", "side"}


def test_merge_patch_with_null_removes_key(kube: Kube) -> None:
    """Timers are removed by annotations of value null."""
    kube.core.create_node({"metadata": {"name": "n", "annotations": {"a": "1", "b": "2"}}})
    body = {"metadata": {"annotations": {"a": None}}}
    answer = kube.ask("PATCH", "/api/v1/nodes/n", body, content_type=MERGE)
    assert answer.body["metadata"]["annotations"] == {"b": "2"}


def test_json_patch_with_failing_test_changes_nothing(kube: Kube) -> None:
    """Taints are removed under a test operation; without it another's taint would go."""
    kube.core.create_node({"metadata": {"name": "n", "labels": {"a": "1"}}})
    operations = [
        {"op": "test", "path": "/metadata/labels/a", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]
    kind = "application/json-patch+json"
    assert kube.ask("PATCH", "/api/v1/nodes/n", operations, content_type=kind).code == 422
    operations[0]["value"] = "1"
    answer = kube.ask("PATCH", "/api/v1/nodes/n", operations, content_type=kind)
    assert "a" not in answer.body["metadata"].get("labels", {})
    assert kube.ask("PATCH", "/api/v1/nodes/n", {}, content_type="text/plain").code == 415


def test_protobuf_is_refused_as_a_media_type(kube: Kube) -> None:
    """A client that speaks protobuf must be told that, not that its JSON is broken."""
    kind = "application/vnd.kubernetes.protobuf"
    body = {"metadata": {"name": "n"}}
    answer = kube.ask("POST", "/api/v1/nodes", body, content_type=kind)
    assert answer.code == 415
    assert "application/json, application/yaml" in answer.body["message"]
    assert "--dry-run=client -o yaml | kubectl apply -f -" in answer.body["message"]
    kube.core.create_node(body)
    assert kube.ask("PATCH", "/api/v1/nodes/n", body, content_type=kind).code == 415
    assert kube.ask("PUT", "/api/v1/nodes/n", body, content_type=kind).code == 415


def test_status_and_spec_are_written_apart(kube: Kube) -> None:
    """A status report must never scale, a scale must never report."""
    kube.apps.create_namespaced_deployment("default", workload("w", 0, paused=True))
    path = "/apis/apps/v1/namespaces/default/deployments/w"
    both = {"spec": {"replicas": 5}, "status": {"readyReplicas": 7}}
    reported = kube.ask("PATCH", f"{path}/status", both, content_type=MERGE).body
    assert (reported["spec"]["replicas"], reported["status"]["readyReplicas"]) == (0, 7)
    scaled = kube.ask("PATCH", path, both, content_type=MERGE).body
    assert scaled["spec"]["replicas"] == 5
    assert scaled["metadata"]["generation"] == 2


def test_update_that_changes_nothing_keeps_version(kube: Kube) -> None:
    """Idempotent writers would wake every watcher for nothing."""
    node = kube.core.create_node({"metadata": {"name": "n", "labels": {"a": "1"}}})
    kube.until(kube.core.list_node, lambda n: bool(n.status.conditions) and not n.spec.taints)
    before = kube.core.read_node("n")
    after = kube.core.patch_node("n", {"metadata": {"labels": {"a": "1"}}})
    assert after.metadata.resource_version == before.metadata.resource_version
    assert after.metadata.uid == node.metadata.uid


def test_lease_is_taken_by_one_of_two(kube: Kube) -> None:
    """Two leaders would act at the same time."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = kube.ask("POST", path, {"metadata": {"name": "l"}, "spec": spec}).body
    lease["spec"]["holderIdentity"] = "b"
    assert kube.ask("PUT", f"{path}/l", lease).code == 200
    lease["spec"]["holderIdentity"] = "c"
    assert kube.ask("PUT", f"{path}/l", lease).code == 409
    del lease["metadata"]["resourceVersion"]
    assert kube.ask("PUT", f"{path}/l", lease).code == 422


def test_server_side_apply_creates_then_merges(kube: Kube) -> None:
    """`kubectl apply --server-side` of a manifest must work twice."""
    path = "/api/v1/namespaces/default/configmaps/c?fieldManager=t&force=true"
    kind = "application/apply-patch+yaml"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    assert kube.ask("PATCH", path, body, content_type=kind).code == 201
    again = kube.ask("PATCH", path, {**body, "data": {"b": "2"}}, content_type=kind)
    assert (again.code, again.body["data"]) == (200, {"a": "1", "b": "2"})


def test_dry_run_leaves_nothing(kube: Kube) -> None:
    """Checks before acting would act."""
    kube.core.create_namespaced_pod("default", pod_body("p"), dry_run="All")
    assert kube.core.list_namespaced_pod("default").items == []


def test_version_of_the_future_is_not_answered(kube: Kube) -> None:
    """After a restart of the server stale caches must notice."""
    answer = kube.ask("GET", f"{PODS}?resourceVersion=999999")
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")


def test_discovery_serves_dynamic_client(kube: Kube) -> None:
    """Programs such as kubectl and dynamic clients find types only by discovery."""
    groups = {g["name"] for g in kube.ask("GET", "/apis").body["groups"]}
    assert {"apps", "batch", "policy", "coordination.k8s.io", "storage.k8s.io"} <= groups
    names = {r["name"] for r in kube.ask("GET", "/api/v1").body["resources"]}
    assert {"pods", "pods/eviction", "pods/binding", "nodes/status"} <= names
    assert kube.ask("GET", "/apis/none/v1").code == 404


def test_events_beyond_the_limit_are_forgotten(make_cluster: MakeCluster) -> None:
    """A sandbox that stays up for days would fill its memory with events."""
    kube = make_cluster(events_max=3)
    for number in range(6):
        kube.core.create_namespaced_pod("default", pod_body(f"p{number}"))
    kube.until(
        kube.core.list_namespaced_event,
        lambda e: e.involved_object.name == "p5",
        "default",
    )
    assert len(kube.core.list_namespaced_event("default").items) <= 3

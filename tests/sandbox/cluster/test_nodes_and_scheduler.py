"""Nodes that fall silent or go, and where pods are put."""

from typing import Any

from tests.sandbox.cluster.conftest import MakeCluster
from tests.sandbox.cluster.kube import Kube, add_node, is_ready, pod_body, workload

STOPPED = {"metadata": {"annotations": {"sandbox.fleet-reconciler.io/kubelet": "stopped"}}}


def unschedulable(pod: Any) -> bool:
    """The scheduler has called the pod unschedulable."""
    return any(
        c.type == "PodScheduled" and c.reason == "Unschedulable"
        for c in pod.status.conditions or []
    )


def run_pod(kube: Kube, name: str, cpu: str = "100m", **spec: Any) -> Any:
    """A pod once it is Ready."""
    kube.core.create_namespaced_pod("default", pod_body(name, cpu, **spec))
    return kube.until(
        kube.core.list_namespaced_pod,
        lambda p: p.metadata.name == name and is_ready(p),
        "default",
    )


def refusal_of(kube: Kube, name: str) -> str:
    """The scheduler's message once it has refused the pod."""
    pod = kube.until(
        kube.core.list_namespaced_pod,
        lambda p: p.metadata.name == name and unschedulable(p),
        "default",
    )
    return str(pod.status.conditions[0].message)


def test_silent_node_turns_unknown_and_is_tainted(make_cluster: MakeCluster) -> None:
    """A node whose instance is gone would stay a destination."""
    kube = make_cluster(node_monitor_grace_seconds=0.1)
    add_node(kube, "a")
    run_pod(kube, "p")
    kube.core.patch_node("a", STOPPED)
    node = kube.until(kube.core.list_node, lambda n: len(n.spec.taints or []) == 2)
    ready = next(c for c in node.status.conditions if c.type == "Ready")
    assert (ready.status, ready.reason) == ("Unknown", "NodeStatusUnknown")
    assert {(t.key, t.effect) for t in node.spec.taints} == {
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    }
    kube.until(kube.core.list_namespaced_pod, lambda p: not is_ready(p), "default")


def test_pods_of_a_deleted_node_are_removed(cluster: Kube) -> None:
    """Deployments would wait for pods on machines that are gone."""
    cluster.apps.create_namespaced_deployment("default", workload("web", 4))
    cluster.until(
        cluster.apps.list_namespaced_deployment,
        lambda d: d.status.available_replicas == 4,
        "default",
    )
    cluster.core.delete_node("a")
    cluster.until(
        cluster.apps.list_namespaced_deployment,
        lambda d: (
            d.status.available_replicas == 4
            and {p.spec.node_name for p in cluster.core.list_namespaced_pod("default").items}
            == {"b"}
        ),
        "default",
    )


def test_node_has_a_lease_that_goes_with_it(cluster: Kube) -> None:
    """Leases of gone nodes would pile up."""
    leases = cluster.coordination.list_namespaced_lease
    found = cluster.until(leases, lambda lease: lease.metadata.name == "a", "kube-node-lease")
    assert found.spec.holder_identity == "a"
    cluster.core.delete_node("a")
    cluster.until_gone(leases, "a", "kube-node-lease")


def test_pod_that_fits_nowhere_is_reported_why(cluster: Kube) -> None:
    """The reconciler and people read the condition; without an event nobody sees it."""
    cluster.core.create_namespaced_pod("default", pod_body("big", "8"))
    cluster.core.create_namespaced_pod("default", pod_body("far", nodeSelector={"no": "where"}))
    found = {name: refusal_of(cluster, name) for name in ("big", "far")}
    assert found["big"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert "2 node(s) didn't match Pod's node affinity/selector" in found["far"]
    cluster.until(
        cluster.core.list_namespaced_event,
        lambda e: e.reason == "FailedScheduling" and e.involved_object.name == "big",
        "default",
    )


def test_waiting_pod_is_bound_when_a_node_joins(kube: Kube) -> None:
    """New capacity would stay unused: the whole point of the program."""
    kube.core.create_namespaced_pod("default", pod_body("p"))
    kube.until(kube.core.list_namespaced_pod, unschedulable, "default")
    add_node(kube, "a")
    pod = kube.until(kube.core.list_namespaced_pod, is_ready, "default")
    assert pod.spec.node_name == "a"


def test_pods_spread_to_the_least_allocated_node(cluster: Kube) -> None:
    """Real clusters fill evenly; scale-in is tested against that."""
    first = run_pod(cluster, "one", "2")
    second = run_pod(cluster, "two", "1")
    assert first.spec.node_name != second.spec.node_name


def test_preferred_neighbour_outweighs_the_emptier_node(cluster: Kube) -> None:
    """Soft terms decide where pods run, so a sandbox without them would show other idle nodes."""
    first = run_pod(cluster, "one", "2")
    near = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "one"}},
    }
    prefers = [{"weight": 100, "podAffinityTerm": near}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefers}}
    second = run_pod(cluster, "two", affinity=affinity)
    assert second.spec.node_name == first.spec.node_name


def test_higher_priority_is_served_first(kube: Kube) -> None:
    """Critical pods would wait behind batch."""
    body = {"metadata": {"name": "high"}, "value": 1000}
    kube.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    kube.core.create_namespaced_pod("default", pod_body("low", "3"))
    kube.core.create_namespaced_pod("default", pod_body("top", "3", priorityClassName="high"))
    kube.until(
        kube.core.list_namespaced_pod,
        lambda p: p.metadata.name == "top" and unschedulable(p),
        "default",
    )
    add_node(kube, "a")
    pod = kube.until(kube.core.list_namespaced_pod, is_ready, "default")
    assert pod.metadata.name == "top"


def test_balloon_makes_room_for_real_pods(kube: Kube) -> None:
    """Headroom that does not yield is waste."""
    body = {"metadata": {"name": "balloon"}, "value": -10}
    kube.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    add_node(kube, "a")
    run_pod(kube, "air", "3", priorityClassName="balloon")
    assert run_pod(kube, "real", "2").spec.node_name == "a"
    kube.until_gone(kube.core.list_namespaced_pod, "air", "default")


def test_gated_pod_waits_until_its_gate_is_removed(cluster: Kube) -> None:
    """Queues hold jobs back with gates; such pods are no demand."""
    gates = [{"name": "example.com/queue"}]
    cluster.core.create_namespaced_pod("default", pod_body("p", schedulingGates=gates))
    cluster.until(
        cluster.core.list_namespaced_pod,
        lambda p: any(c.reason == "SchedulingGated" for c in p.status.conditions or []),
        "default",
    )
    cluster.ask(
        "PATCH",
        "/api/v1/namespaces/default/pods/p",
        {"spec": {"schedulingGates": None}},
        content_type="application/merge-patch+json",
    )
    cluster.until(cluster.core.list_namespaced_pod, is_ready, "default")


def test_pod_of_another_scheduler_is_left_alone(cluster: Kube) -> None:
    """Two schedulers would bind one pod."""
    cluster.core.create_namespaced_pod("default", pod_body("theirs", schedulerName="other"))
    run_pod(cluster, "ours")
    theirs = cluster.core.read_namespaced_pod("theirs", "default")
    assert theirs.spec.node_name is None
    assert not theirs.status.conditions


def test_claim_is_bound_in_the_zone_of_its_first_pod(kube: Kube) -> None:
    """Later pods of the claim must follow the volume's zone."""
    zone = {"topology.kubernetes.io/zone": "z1"}
    kube.core.create_node({"metadata": {"name": "a", "labels": zone}})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kube.core.create_namespaced_persistent_volume_claim(
        "default", {"metadata": {"name": "data"}, "spec": claim}
    )
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    run_pod(kube, "p", volumes=[volume])
    (made,) = kube.core.list_persistent_volume().items
    (term,) = made.spec.node_affinity.required.node_selector_terms
    assert term.match_expressions[0].values == ["z1"]
    assert made.spec.claim_ref.name == "data"

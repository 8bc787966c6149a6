"""Controllers: what manifests turn into."""

from typing import Any

from tests.sandbox.cluster.conftest import MakeCluster
from tests.sandbox.cluster.kube import Kube, add_node, available, is_ready, pod_body, workload


def job(name: str, command: list[str], **spec: Any) -> dict[str, Any]:
    """A Job whose pods run one command."""
    container = {"name": "c", "image": "x:1", "command": command}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def ended(kube: Kube, name: str, kind: str) -> Any:
    """Wait until a Job has this condition."""

    def holds(body: Any) -> bool:
        conditions = (body.status.conditions or []) if body.status else []
        return body.metadata.name == name and any(
            c.type == kind and c.status == "True" for c in conditions
        )

    return kube.until(kube.batch.list_namespaced_job, holds, "default")


def pods_of(kube: Kube, **selection: str) -> list[Any]:
    """Pods of the namespace."""
    items: list[Any] = kube.core.list_namespaced_pod("default", **selection).items
    return items


def test_job_runs_its_pods_to_completion(cluster: Kube) -> None:
    """The demo's main workload would never end."""
    body = job("j", ["sleep", "0.1"], completions=5, parallelism=2)
    cluster.batch.create_namespaced_job("default", body)
    done = ended(cluster, "j", "Complete")
    assert (done.status.succeeded, done.status.failed or 0) == (5, 0)
    assert done.status.completion_time is not None
    finished = pods_of(cluster, label_selector="batch.kubernetes.io/job-name=j")
    assert [p.status.phase for p in finished] == ["Succeeded"] * 5


def test_job_that_fails_stops_at_its_backoff_limit(cluster: Kube) -> None:
    """Failing jobs would ask for capacity for ever."""
    body = job("j", ["sh", "-c", "exit 3"], backoffLimit=2)
    cluster.batch.create_namespaced_job("default", body)
    failed = ended(cluster, "j", "Failed")
    assert failed.status.failed == 3
    states = [p.status.container_statuses[0].state for p in pods_of(cluster)]
    assert {s.terminated.exit_code for s in states} == {3}


def test_indexed_job_completes_each_index_once(cluster: Kube) -> None:
    """Array jobs would run an index twice and another never."""
    body = job("j", ["true"], completions=4, parallelism=4, completionMode="Indexed")
    cluster.batch.create_namespaced_job("default", body)
    assert ended(cluster, "j", "Complete").status.completed_indexes == "0-3"


def test_pod_of_job_runs_as_long_as_its_annotation_says(make_cluster: MakeCluster) -> None:
    """Workloads of a trace last as long as in the trace."""
    kube = make_cluster(job_seconds=3600)
    add_node(kube, "a")
    body = job("j", ["run"])
    annotations = {"sandbox.fleet-reconciler.io/duration": "0.2"}
    body["spec"]["template"]["metadata"] = {"annotations": annotations}
    kube.batch.create_namespaced_job("default", body)
    assert ended(kube, "j", "Complete").status.succeeded == 1


def test_evicted_pod_of_job_is_counted_and_replaced(cluster: Kube) -> None:
    """Scale-in leaves running jobs alone because this costs them their work."""
    cluster.batch.create_namespaced_job("default", job("j", ["sleep", "3600"]))
    first = cluster.until(cluster.core.list_namespaced_pod, is_ready, "default")
    body = {"metadata": {"name": first.metadata.name}}
    path = f"/api/v1/namespaces/default/pods/{first.metadata.name}/eviction"
    assert cluster.ask("POST", path, body).code == 201
    counted = cluster.until(
        cluster.batch.list_namespaced_job,
        lambda j: j.status.failed == 1 and j.status.ready == 1,
        "default",
    )
    assert counted.status.active == 1
    cluster.until_gone(cluster.core.list_namespaced_pod, first.metadata.name, "default")


def test_recreate_ends_old_pods_before_new_ones_start(cluster: Kube) -> None:
    """Two versions of a single writer would run at once."""
    body = workload("web", 2, strategy={"type": "Recreate"})
    cluster.apps.create_namespaced_deployment("default", body)
    available(cluster, "web", 2)
    old = {p.metadata.name for p in pods_of(cluster)}
    patch = {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
    cluster.apps.patch_namespaced_deployment("web", "default", patch)
    created = cluster.until(
        cluster.core.list_namespaced_pod, lambda p: p.metadata.name not in old, "default"
    )
    gone = {p.metadata.name for p in pods_of(cluster)}
    assert not gone & old
    assert created.metadata.labels["v"] == "2"


def test_container_that_ends_is_restarted_and_counted(make_cluster: MakeCluster) -> None:
    """The descheduler judges pods by their restarts."""
    kube = make_cluster(restart_seconds=0.05)
    add_node(kube, "a")
    body = pod_body("p")
    body["metadata"]["annotations"] = {"sandbox.fleet-reconciler.io/duration": "0.05"}
    kube.core.create_namespaced_pod("default", body)
    kube.until(
        kube.core.list_namespaced_pod,
        lambda p: any(c.restart_count >= 2 for c in p.status.container_statuses or []),
        "default",
    )


def test_rollout_replaces_pods_without_going_below_the_minimum(cluster: Kube) -> None:
    """Consolidation measures itself against availability during rollouts."""
    body = workload("web", 4, strategy={"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}})
    cluster.apps.create_namespaced_deployment("default", body)
    available(cluster, "web", 4)
    old = {p.metadata.name for p in pods_of(cluster)}
    seen: list[int] = []

    def done(body: Any) -> bool:
        seen.append(body.status.available_replicas or 0)
        status = body.status
        return bool(
            status.observed_generation == body.metadata.generation
            and status.updated_replicas == status.replicas == status.available_replicas == 4
        )

    patch = {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
    changed = cluster.apps.patch_namespaced_deployment("web", "default", patch)
    cluster.until(
        cluster.apps.list_namespaced_deployment,
        done,
        "default",
        resource_version=changed.metadata.resource_version,
    )
    assert min(seen) >= 3
    present = {p.metadata.name for p in pods_of(cluster) if not p.metadata.deletion_timestamp}
    assert not present & old
    assert len(cluster.apps.list_namespaced_replica_set("default").items) == 2


def test_scale_subresource_changes_the_number_of_pods(cluster: Kube) -> None:
    """HPAs and people scale through it."""
    cluster.apps.create_namespaced_deployment("default", workload("web", 1))
    available(cluster, "web", 1)
    cluster.apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    available(cluster, "web", 3)
    scale = cluster.apps.read_namespaced_deployment_scale("web", "default")
    assert (scale.spec.replicas, scale.status.selector) == (3, "app=web")


def test_stateful_set_numbers_its_pods_in_order_with_claims(cluster: Kube) -> None:
    """Volumes pin such pods to zones; without claims nothing would be pinned."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    body = workload("db", 2, serviceName="db", volumeClaimTemplates=[claim])
    cluster.apps.create_namespaced_stateful_set("default", body)
    cluster.until(
        cluster.apps.list_namespaced_stateful_set,
        lambda s: s.status.ready_replicas == 2,
        "default",
    )
    assert [p.metadata.name for p in pods_of(cluster)] == ["db-0", "db-1"]
    claims = cluster.core.list_namespaced_persistent_volume_claim("default").items
    assert [(c.metadata.name, c.status.phase) for c in claims] == [
        ("data-db-0", "Bound"),
        ("data-db-1", "Bound"),
    ]


def test_daemon_pod_runs_on_every_node_that_joins(cluster: Kube) -> None:
    """New nodes would look emptier than they are."""
    body = workload("agent", None)
    selector = {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [selector]}}
    body["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": terms}
    cluster.apps.create_namespaced_daemon_set("default", body)
    add_node(cluster, "g", gpu="yes")
    add_node(cluster, "c")
    cluster.until(
        cluster.apps.list_namespaced_daemon_set,
        lambda d: d.status.number_ready == d.status.desired_number_scheduled == 3,
        "default",
    )
    assert sorted(p.spec.node_name for p in pods_of(cluster)) == ["a", "b", "c"]


def test_daemon_pod_ignores_a_cordon_but_not_a_taint(cluster: Kube) -> None:
    """Draining nodes keep their agents; tainted ones never get any."""
    cluster.core.patch_node("a", {"spec": {"unschedulable": True}})
    taint = {"key": "own", "effect": "NoSchedule"}
    cluster.core.patch_node("b", {"spec": {"taints": [taint]}})
    cluster.apps.create_namespaced_daemon_set("default", workload("agent", None))
    cluster.until(
        cluster.apps.list_namespaced_daemon_set,
        lambda d: d.status.number_ready == 1,
        "default",
    )
    assert [p.spec.node_name for p in pods_of(cluster)] == ["a"]


def test_deletion_of_owner_collects_what_it_made(cluster: Kube) -> None:
    """Deleted deployments would keep their nodes busy."""
    cluster.apps.create_namespaced_deployment("default", workload("web", 2))
    available(cluster, "web", 2)
    pods = [p.metadata.name for p in pods_of(cluster)]
    cluster.apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
    for name in pods:
        cluster.until_gone(cluster.core.list_namespaced_pod, name, "default")
    cluster.until_gone(cluster.apps.list_namespaced_deployment, "web", "default")
    assert cluster.apps.list_namespaced_replica_set("default").items == []


def test_orphaned_pods_stay(cluster: Kube) -> None:
    """`--cascade=orphan` is how people move pods between owners."""
    cluster.apps.create_namespaced_deployment("default", workload("web", 1))
    available(cluster, "web", 1)
    (owner,) = cluster.apps.list_namespaced_replica_set("default").items
    cluster.apps.delete_namespaced_deployment("web", "default", propagation_policy="Orphan")
    cluster.until_gone(cluster.apps.list_namespaced_deployment, "web", "default")
    kept = cluster.apps.read_namespaced_replica_set(owner.metadata.name, "default")
    assert not kept.metadata.owner_references


def test_namespace_goes_with_its_contents(cluster: Kube) -> None:
    """Test suites leave namespaces behind that can never be made again."""
    cluster.core.create_namespace({"metadata": {"name": "n"}})
    cluster.core.create_namespaced_pod("n", pod_body("p"))
    cluster.until(cluster.core.list_namespaced_pod, is_ready, "n")
    cluster.core.delete_namespace("n")
    cluster.until_gone(cluster.core.list_namespace, "n")
    assert cluster.core.list_namespaced_pod("n").items == []

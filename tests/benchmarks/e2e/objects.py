"""The cluster that is measured on: nodes of the sandbox's instances, pods as real ones look."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from random import Random  # noqa: TID251 - seeded
from typing import Any
from uuid import UUID

from reconciler.config.catalogue import load_catalogue
from reconciler.sandbox.joiner.node_object import InstanceFacts, node_object
from reconciler.sandbox.joiner.user_data import read_user_data
from tests.benchmarks.e2e.etcd import Object

NAMESPACE = "default"
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
APPLICATIONS = 300
_DISK_BYTES = 50 * 2**30
_SHAPES = (
    ("100m", "256Mi"),
    ("150m", "512Mi"),
    ("200m", "1Gi"),
    ("250m", "1536Mi"),
    ("300m", "2Gi"),
)
"""30 of the mean fill a node of 8 vCPU to three quarters."""
_SEED = 6


def now() -> str:
    """The wall clock, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - of real processes


@cache
def _dice() -> Random:
    return Random(_SEED)


def uid() -> str:
    """A new object's uid."""
    return str(UUID(int=_dice().getrandbits(128), version=4))


def ready_node(facts: InstanceFacts) -> tuple[str, dict[str, Any]]:
    """What the joiner would register for an instance, once its kubelet is Ready."""
    node = node_object(facts, read_user_data(facts.user_data), load_catalogue(), _DISK_BYTES)
    node["metadata"] |= {"uid": uid(), "creationTimestamp": now()}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": now(),
        "lastTransitionTime": now(),
    }
    node["status"]["conditions"] = [ready]
    return f"minions/{node['metadata']['name']}", node


def replica_set(number: int, replicas: int) -> tuple[str, dict[str, Any]]:
    """An application; its controller leaves pods alone that are as many as it wants."""
    labels = {"app": f"app-{number}"}
    cpu, memory = _SHAPES[number % len(_SHAPES)]
    metadata = {
        "name": f"app-{number}",
        "namespace": NAMESPACE,
        "uid": uid(),
        "labels": labels,
        "creationTimestamp": now(),
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _spec(cpu, memory, {})},
    }
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}
    return f"replicasets/{NAMESPACE}/app-{number}", body


def running_pods(
    nodes: list[str], per_node: int, owners: Mapping[int, Mapping[str, Any]]
) -> Iterator[Object]:
    """Bound, running and ready pods; every node has as many of each shape."""
    for number in range(len(nodes) * per_node):
        application = number % APPLICATIONS
        cpu, memory = _SHAPES[application % len(_SHAPES)]
        pod = pod_body(f"app-{application}-{number:05d}", cpu, memory)
        pod["metadata"]["labels"] |= {"app": f"app-{application}"}
        pod["metadata"]["ownerReferences"] = [owners[application]]
        run(pod, nodes[number // per_node])
        yield pod_key(pod["metadata"]["name"]), pod


def pod_key(name: str) -> str:
    """Where etcd has a pod."""
    return f"pods/{NAMESPACE}/{name}"


def pod_body(name: str, cpu: str, memory: str, selector: Mapping[str, str] | None = None) -> Any:
    """A pending pod with everything that admission and its creator add to it: 5 KB."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid(),
            "creationTimestamp": now(),
            "labels": {"pod-template-hash": "6b9f4c7d58", "team": "bench"},
            "annotations": {"kubernetes.io/config.seen": now(), "prometheus.io/scrape": "true"},
            "managedFields": [_managed("kube-controller-manager")],
        },
        "spec": _spec(cpu, memory, selector or {}),
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def run(pod: Any, node: str) -> None:
    """The pod is bound to the node and all of its containers are up: 8 KB by now."""
    pod["spec"]["nodeName"] = node
    pod["metadata"]["managedFields"].append(_managed("kubelet"))
    conditions = ("Initialized", "PodScheduled", "ContainersReady", "Ready")
    pod["status"] |= {
        "phase": "Running",
        "startTime": now(),
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "hostIP": "10.0.0.7",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now()} for kind in conditions
        ],
        "containerStatuses": [
            {
                "name": name,
                "image": f"registry.example.com/team/{name}:1.2.3",
                "imageID": f"registry.example.com/team/{name}@sha256:{'5e' * 32}",
                "containerID": f"containerd://{'a7' * 32}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now()}},
            }
            for name in ("app", "proxy")
        ],
    }


def _spec(cpu: str, memory: str, selector: Mapping[str, str]) -> dict[str, Any]:
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
        | {"tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    return {
        "containers": [
            _container("app", {"cpu": cpu, "memory": memory}),
            _container("proxy", {"cpu": "10m", "memory": "32Mi"}),
        ],
        "volumes": [{"name": "cache", "emptyDir": {"medium": "Memory"}}],
        "nodeSelector": dict(selector),
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": tolerations,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _container(name: str, requests: Mapping[str, str]) -> dict[str, Any]:
    probe = {"path": "/healthz", "port": 8080, "scheme": "HTTP"}
    seconds = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1}
    return {
        "name": name,
        "image": f"registry.example.com/team/{name}:1.2.3",
        "env": [
            {"name": f"SETTING_{n}", "value": f"https://service-{n}.example.com/path"}
            for n in range(8)
        ],
        "resources": {"requests": dict(requests), "limits": {"memory": requests["memory"]}},
        "volumeMounts": [{"name": "cache", "mountPath": "/var/cache/app"}],
        "livenessProbe": {"httpGet": probe, "failureThreshold": 3, **seconds},
        "readinessProbe": {"httpGet": probe, "failureThreshold": 3, **seconds},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _managed(manager: str) -> dict[str, Any]:
    """Half of what the API server sends of a pod is this."""
    fields: dict[str, Any] = {
        f"f:setting-{n}": {".": {}, "f:name": {}, "f:value": {}} for n in range(36)
    }
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": now(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}, "f:spec": fields},
    }

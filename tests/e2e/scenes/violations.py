"""How each policy of the descheduler is violated on a control plane, and when that has gone.

All violations are made of three nodes with room for every pod, and of what people change after
kube-scheduler has placed the pods: labels, taints, cordons, other pods.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.cluster import Node, Pod
from tests.e2e.scene import Scene, pod_spec, template

HOST = "kubernetes.io/hostname"
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One policy."""

    policy: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[Scene], None]
    """Pods run when it returns, and the policy is violated."""
    gone: Callable[[Scene], bool]
    """Whether it is violated no more; all replicas run then."""
    evictions: int = 1
    lowest: int = 3
    """min_capacity of the fleet: below the three nodes where a node has to be dispensable."""
    comes_back: bool = False
    """Whether time alone violates it again."""


def deploy(scene: Scene, name: str, replicas: int, cpu: str = "500m", **spec: Any) -> None:
    """A Deployment, and wait until it runs."""
    labels = {"app": name}
    there = len(scene.running())
    scene.create(
        "Deployment", name, {"replicas": replicas, **template(labels, pod_spec(cpu, **spec))}
    )
    scene.until(lambda _: len(scene.running()) == there + replicas, f"{name} runs")


def of(scene: Scene, name: str) -> list[Pod]:
    """The running pods of a Deployment."""
    return [pod for pod in scene.running() if pod.labels.get("app") == name]


def hosts(scene: Scene, name: str) -> Counter[str]:
    """On which nodes they run."""
    return Counter(str(pod.node_name) for pod in of(scene, name))


def change_node(scene: Scene, node: str, body: Mapping[str, Any]) -> None:
    """As kubectl patch does."""
    path = f"/api/v1/nodes/{node}"
    scene.api.expect("PATCH", path, body=dict(body), content_type=_MERGE)


def label(scene: Scene, node: str, **labels: str | None) -> None:
    """As kubectl label does; None takes a label off."""
    change_node(scene, node, {"metadata": {"labels": labels}})


def names(scene: Scene) -> list[str]:
    """The nodes, sorted."""
    return sorted(str(node.name) for node in scene.nodes())


@contextmanager
def only_on(scene: Scene, node: str) -> Iterator[None]:
    """Have new pods come to one node: the others are cordoned meanwhile."""
    others = [name for name in names(scene) if name != node]
    _cordon(scene, others, {"unschedulable": True})
    yield
    _cordon(scene, others, {"unschedulable": None})


def _cordon(scene: Scene, nodes: list[str], spec: Mapping[str, Any]) -> None:
    for node in nodes:
        change_node(scene, node, {"spec": dict(spec)})
    wanted = bool(spec["unschedulable"])
    scene.until(
        lambda _: all(_cordoned(n) is wanted for n in scene.nodes() if str(n.name) in nodes),
        "cordons are seen",
    )


def _cordoned(node: Node) -> bool:
    return any(taint.key == "node.kubernetes.io/unschedulable" for taint in node.taints)


def change_pod(scene: Scene, pod: Pod, body: Mapping[str, Any], part: str = "") -> None:
    """As kubectl patch does."""
    path = f"/api/v1/namespaces/{scene.name}/pods/{pod.key.name}{part}"
    scene.api.expect("PATCH", path, body=dict(body), content_type=_MERGE)


def _taint(scene: Scene) -> None:
    deploy(scene, "web", 1)
    (node,) = hosts(scene, "web")
    taint = {"key": "team", "value": "ml", "effect": "NoSchedule"}
    change_node(scene, node, {"spec": {"taints": [taint]}})
    scene.until(
        lambda _: any(t.key == "team" for n in scene.nodes() for t in n.taints), "it is tainted"
    )


def _untainted(scene: Scene) -> bool:
    tainted = {n.name for n in scene.nodes() if any(t.key == "team" for t in n.taints)}
    return len(of(scene, "web")) == 1 and not tainted & set(hosts(scene, "web"))


def _affinity(scene: Scene) -> None:
    first, second, _ = names(scene)
    for node in (first, second):
        label(scene, node, tier="gold")
    gold = {"key": "tier", "operator": "In", "values": ["gold"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [gold]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    deploy(scene, "web", 1, affinity=affinity)
    (node,) = hosts(scene, "web")
    label(scene, node, tier=None)


def _on_gold(scene: Scene) -> bool:
    gold = {n.name for n in scene.nodes() if n.labels.get("tier") == "gold"}
    return len(of(scene, "web")) == 1 and set(hosts(scene, "web")) <= gold


def _anti_affinity(scene: Scene) -> None:
    node = names(scene)[0]
    loud = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"noise": "loud"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [loud]}}
    with only_on(scene, node):
        deploy(scene, "noisy", 1)
        deploy(scene, "quiet", 1, affinity=apart)
    (noisy,) = of(scene, "noisy")
    change_pod(scene, noisy, {"metadata": {"labels": {"noise": "loud"}}})


def _apart(scene: Scene) -> bool:
    loud = {str(p.node_name) for p in scene.running() if p.labels.get("noise") == "loud"}
    return len(scene.running()) == 2 and not loud & set(hosts(scene, "quiet"))


def _spread(scene: Scene) -> None:
    late, *others = names(scene)
    for node in others:
        label(scene, node, rack="a")
    even = {
        "topologyKey": "rack",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    deploy(scene, "web", 4, topologySpreadConstraints=[even])
    label(scene, late, rack="b")


def _even(scene: Scene) -> bool:
    racks = {str(n.name): n.labels.get("rack") for n in scene.nodes()}
    counts = Counter(racks[host] for host in hosts(scene, "web").elements())
    return counts == {"a": 2, "b": 2}


def _duplicates(scene: Scene) -> None:
    with only_on(scene, names(scene)[0]):
        deploy(scene, "web", 2)


def _full(scene: Scene) -> None:
    with only_on(scene, names(scene)[0]):
        deploy(scene, "web", 5, "700m")


def _sparse(scene: Scene) -> None:
    first, second, _ = names(scene)
    with only_on(scene, first):
        deploy(scene, "many", 3)
    with only_on(scene, second):
        deploy(scene, "few", 1)


def _restarted(scene: Scene) -> None:
    deploy(scene, "web", 2)
    pod = of(scene, "web")[0]
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "main", "image": "registry/app:1", "imageID": "", "ready": True}
    status = {"containerStatuses": [{**container, "restartCount": 9, "state": state}]}
    change_pod(scene, pod, {"status": status}, "/status")


def _no_restarts(scene: Scene) -> bool:
    pods = of(scene, "web")
    return len(pods) == 2 and not any(s.restarts for pod in pods for s in pod.containers)


def _old(scene: Scene) -> None:
    deploy(scene, "web", 1)


def _failed(scene: Scene) -> None:
    deploy(scene, "web", 2)
    change_pod(scene, of(scene, "web")[0], {"status": {"phase": "Failed"}}, "/status")


def tidy(scene: Scene) -> None:
    """Delete all Deployments, and take off what was put onto nodes."""
    deployments = {pod.labels["app"] for pod in scene.pods()}
    for name in deployments:
        scene.delete("Deployment", name)
    for node in names(scene):
        label(scene, node, tier=None, rack=None)
        change_node(scene, node, {"spec": {"taints": None}})
    scene.until(lambda _: not scene.pods(), "all pods are gone")


VIOLATIONS = (
    Violation(policy="RemovePodsViolatingNodeTaints", make=_taint, gone=_untainted),
    Violation(
        policy="RemovePodsViolatingNodeAffinity",
        arguments={"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
        make=_affinity,
        gone=_on_gold,
    ),
    Violation(policy="RemovePodsViolatingInterPodAntiAffinity", make=_anti_affinity, gone=_apart),
    Violation(
        policy="RemovePodsViolatingTopologySpreadConstraint",
        make=_spread,
        gone=_even,
        evictions=2,
    ),
    Violation(
        policy="RemoveDuplicates",
        make=_duplicates,
        gone=lambda scene: len(hosts(scene, "web")) == 2,
    ),
    Violation(
        policy="LowNodeUtilization",
        arguments={"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
        make=_full,
        gone=lambda scene: len(of(scene, "web")) == 5 and max(hosts(scene, "web").values()) <= 2,
        evictions=3,
    ),
    Violation(
        policy="HighNodeUtilization",
        arguments={"thresholds": {"cpu": 20}},
        make=_sparse,
        gone=lambda scene: (
            len(of(scene, "few")) == 1 and set(hosts(scene, "few")) == set(hosts(scene, "many"))
        ),
        lowest=1,
    ),
    Violation(
        policy="RemovePodsHavingTooManyRestarts",
        arguments={"podRestartThreshold": 5},
        make=_restarted,
        gone=_no_restarts,
    ),
    Violation(
        policy="PodLifeTime",
        arguments={"maxPodLifeTimeSeconds": 30},
        make=_old,
        gone=lambda scene: bool(scene.actions("evict-pod")) and len(of(scene, "web")) == 1,
        comes_back=True,
    ),
    Violation(
        policy="RemoveFailedPods",
        make=_failed,
        gone=lambda scene: (
            len(of(scene, "web")) == 2 and not any(p.phase == "Failed" for p in scene.pods())
        ),
    ),
)

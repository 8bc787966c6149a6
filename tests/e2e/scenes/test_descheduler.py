"""A policy of the descheduler finds a violation: it goes, and nothing else moves."""

from collections.abc import Mapping
from typing import Any

from reconciler.model.cluster import Node
from tests.asked import rounds
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_CONFIG = """\
scale_in: {idle_threshold: 300s, settle_time: 2s, utilization_threshold: 0}
descheduler:
  enabled: true
  interval: 10s
  policies: {RemovePodsViolatingNodeTaints: {enabled: true}}"""
_QUIET_PLANS = rounds(4, 1800)
LABELS = {"app": "web"}


def _taint(scene: Scene, node: Node) -> None:
    taint = {"key": "team", "value": "ml", "effect": "NoSchedule"}
    _patch_node(scene, node, {"spec": {"taints": [taint]}})


def _patch_node(scene: Scene, node: Node, body: Mapping[str, Any]) -> None:
    scene.api.expect(
        "PATCH",
        f"/api/v1/nodes/{node.name}",
        body=dict(body),
        content_type="application/merge-patch+json",
    )


def test_violation_goes_and_nothing_else_moves(scene: Scene, closing_lines: list[str]) -> None:
    """A descheduler that evicts more than it mends is worse than none."""
    scene.open(FleetShape(target=3, lowest=3), config=_CONFIG)
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }
    spec = pod_spec("500m", topologySpreadConstraints=[apart])
    scene.create("Deployment", "web", {"replicas": 2, **template(LABELS, spec)})
    scene.until(lambda _: len(scene.running()) == 2, "both run")
    first, _ = sorted(scene.running(), key=lambda pod: pod.key)
    (node,) = [n for n in scene.nodes() if n.name == first.node_name]
    _taint(scene, node)
    wanted = {first.key.name}
    scene.until(
        lambda _: (
            len(scene.running()) == 2 and not wanted & {pod.key.name for pod in scene.running()}
        ),
        "what violated it has gone, and a new pod runs",
        120,
    )
    scene.until(lambda _: bool(scene.actions("evict-pod")), "the log tells of the eviction", 60)
    evicted = scene.actions("evict-pod")
    assert {a["policy"] for a in evicted} == {"deschedule"}
    assert {a["pod"].rpartition("/")[2] for a in evicted} == wanted
    assert node.name not in {pod.node_name for pod in scene.running()}
    scene.until_planned_again(_QUIET_PLANS)
    assert len(scene.actions("evict-pod")) == len(evicted)
    assert scene.actions("terminate-instance") == []
    assert scene.actions("set-capacity") == []
    closing_lines.append(f"descheduler: RemovePodsViolatingNodeTaints: {len(evicted)} evicted")

"""Pods that take their time to end while their node is drained."""

from datetime import datetime

from reconciler.sandbox.cluster.settings import TERMINATION
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_SCALE_IN = (
    "scale_in: {idle_threshold: 2s, unneeded_time: 2s, settle_time: 0s, utilization_threshold: 0.6}"
)
_LABELS = {"app": "slow"}
_SECONDS = 6


def test_instance_lives_until_the_last_pod_has_ended(scene: Scene) -> None:
    """An instance that is ended too early cuts requests off that the grace period is for."""
    scene.open(FleetShape(target=2), config=_SCALE_IN)
    spec = pod_spec("300m", terminationGracePeriodSeconds=30)
    body = {"replicas": 2, **template(_LABELS, spec, {TERMINATION: str(_SECONDS)})}
    scene.create("Deployment", "slow", body)
    scene.until(lambda _: len(scene.running()) == 2, "both run")
    scene.until(lambda _: any(p.deleting for p in scene.pods()) or _left(scene), "an eviction")
    alone: set[str] = set()

    def gone() -> bool:
        nodes = {node.name for node in scene.nodes()}
        left = (p.key.name for p in scene.pods() if p.deleting and p.node_name not in nodes)
        # The watch of nodes may be ahead of that of pods: ask for the pod itself.
        alone.update(name for name in left if scene.has("Pod", name))
        return len(nodes) == 1 and len(scene.running()) == 2

    scene.until(lambda _: gone(), "one node is left with both pods")
    assert not alone
    evicted = scene.actions("evict-pod")
    ended = scene.actions("terminate-instance")
    assert len(ended) == 1
    if evicted:
        assert _seconds(ended[0]["at"]) - _seconds(evicted[-1]["at"]) >= _SECONDS - 1


def _left(scene: Scene) -> bool:
    """Both had started on one node, and the other one went empty."""
    return len(scene.nodes()) == 1


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()

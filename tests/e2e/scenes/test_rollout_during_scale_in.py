"""A Deployment is rolled out while its nodes are being given up."""

import pytest

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_SCALE_IN = (
    "scale_in: {idle_threshold: 2s, unneeded_time: 2s, settle_time: 0s, utilization_threshold: 0.6}"
)
_LABELS = {"app": "web"}
_REPLICAS = 6
_AVAILABLE_MIN = 4
"""The budget: what evictions must leave."""
_ROLLOUT_TAKES = 1
"""A rollout that may have no pod less ends one old pod for each new one that is available. It asks
no budget: one that it ends may come on top of evictions that were allowed a moment before."""


@pytest.mark.nightly
def test_rollout_ends_and_keeps_its_budget_while_nodes_leave(scene: Scene) -> None:
    """Two controllers move the same pods: together they must not take a service down."""
    scene.open(FleetShape(target=4), config=_SCALE_IN)
    strategy = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    spec = template(_LABELS, pod_spec("400m"))
    budget = {"minAvailable": _AVAILABLE_MIN, "selector": {"matchLabels": _LABELS}}
    scene.create("PodDisruptionBudget", "web", budget)
    scene.create("Deployment", "web", {"replicas": _REPLICAS, "strategy": strategy, **spec})
    scene.until(lambda _: _available(scene) == _REPLICAS, "all replicas are available")
    fewest = _REPLICAS

    def rolled_out() -> bool:
        nonlocal fewest
        fewest = min(fewest, _available(scene))
        new = [p for p in scene.running() if p.labels.get("version") == "2"]
        return len(new) == len(scene.pods()) == _REPLICAS

    newer = {"template": {"metadata": {"labels": {"version": "2"}}}}
    scene.patch("Deployment", "web", newer)
    scene.until(lambda _: rolled_out() and len(scene.nodes()) <= 2, "rolled out, on fewer nodes")
    assert fewest >= _AVAILABLE_MIN - _ROLLOUT_TAKES
    assert not scene.actions("delete-pod"), "a pod was ended past the budget"
    assert scene.actions("terminate-instance")


def _available(scene: Scene) -> int:
    """Pods that serve, as the watch of pods has them: the Deployment's status comes later."""
    return sum(pod.ready for pod in scene.running())

"""A Deployment is rolled out while its nodes are being given up."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_SCALE_IN = "scale_in: {idle_threshold: 2s, unneeded_time: 2s, utilization_threshold: 0.6}"
_LABELS = {"app": "web"}


def test_rollout_ends_and_keeps_its_budget_while_nodes_leave(scene: Scene) -> None:
    """Two controllers move the same pods: together they must not take a service down."""
    scene.open(FleetShape(target=4), config=_SCALE_IN)
    spec = pod_spec("400m")
    strategy = {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
    body = {"replicas": 6, "strategy": strategy, **template(_LABELS, spec)}
    budget = {"minAvailable": 4, "selector": {"matchLabels": _LABELS}}
    scene.create("PodDisruptionBudget", "web", budget)
    scene.create("Deployment", "web", body)
    scene.until(lambda _: len(scene.running()) == 6, "all replicas run")
    fewest = 6

    def rolled_out() -> bool:
        nonlocal fewest
        status = scene.get("Deployment", "web")["status"]
        fewest = min(fewest, status.get("availableReplicas", 0))
        new = [p for p in scene.running() if p.labels.get("version") == "2"]
        return len(new) == 6 and len(scene.pods()) == 6

    newer = {"template": {"metadata": {"labels": {"version": "2"}}}}
    scene.patch("Deployment", "web", newer)
    scene.until(lambda _: rolled_out() and len(scene.nodes()) <= 2, "rolled out, on fewer nodes")
    assert fewest >= 4
    assert scene.actions("terminate-instance")

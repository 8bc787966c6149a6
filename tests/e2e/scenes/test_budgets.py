"""PodDisruptionBudgets that hold a node, and let it go."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_SCALE_IN = (
    "scale_in: {idle_threshold: 2s, unneeded_time: 2s, settle_time: 0s, utilization_threshold: 0.6}"
)
_LABELS = {"app": "api"}


def test_budget_blocks_a_drain_until_it_allows_disruptions(scene: Scene) -> None:
    """Evicting past a budget breaks the one promise that owners of services rely on."""
    scene.open(FleetShape(target=2), config=_SCALE_IN)
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _LABELS},
    }
    spec = pod_spec("500m", topologySpreadConstraints=[spread])
    scene.create(
        "PodDisruptionBudget",
        "api",
        {"minAvailable": 2, "selector": {"matchLabels": _LABELS}},
    )
    scene.create("Deployment", "api", {"replicas": 2, **template(_LABELS, spec)})
    scene.until(lambda _: len({p.node_name for p in scene.running()}) == 2, "a replica on each")
    scene.until_planned_again(6)
    assert len(scene.ready_nodes()) == 2
    assert not scene.actions("evict-pod")
    scene.patch("PodDisruptionBudget", "api", {"minAvailable": 1})
    scene.until(lambda _: len(scene.nodes()) == 1, "one node has gone")
    scene.until(lambda _: len(scene.running()) == 2, "both replicas run")
    assert len(scene.actions("evict-pod")) == 1

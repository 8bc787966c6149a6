"""Demand comes while a node is being drained."""

from reconciler.model.actions import DRAINING_TAINT
from reconciler.sandbox.cluster.settings import TERMINATION
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_SCALE_IN = (
    "scale_in: {idle_threshold: 2s, unneeded_time: 2s, settle_time: 0s, utilization_threshold: 0.6}"
)


def test_draining_node_is_taken_back_before_anything_is_bought(scene: Scene) -> None:
    """Buying a node while another one is thrown away pays twice and waits for the launch."""
    scene.open(FleetShape(target=2, most=2), config=_SCALE_IN)
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "slow"}},
    }
    slow = pod_spec("300m", terminationGracePeriodSeconds=60, topologySpreadConstraints=[spread])
    body = {"replicas": 2, **template({"app": "slow"}, slow, {TERMINATION: "50"})}
    scene.create("Deployment", "slow", body)
    scene.until(lambda _: len({p.node_name for p in scene.running()}) == 2, "one on each node")
    scene.until(lambda _: any(_is_draining(n) for n in _taints(scene)), "a drain begins")
    job = {"replicas": 4, **template({"app": "burst"}, pod_spec("1300m"))}
    scene.create("Deployment", "burst", job)
    scene.until(
        lambda _: len([p for p in scene.running() if p.labels["app"] == "burst"]) == 4,
        "the burst runs",
    )
    assert not any(_is_draining(taints) for taints in _taints(scene))
    assert not scene.actions("set-capacity")
    assert not scene.actions("terminate-instance")
    assert len(scene.nodes()) == 2


def _taints(scene: Scene) -> list[list[str]]:
    return [[taint.key for taint in node.taints] for node in scene.nodes()]


def _is_draining(taints: list[str]) -> bool:
    return DRAINING_TAINT in taints

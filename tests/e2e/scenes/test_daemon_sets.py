"""DaemonSets take their part of every new node."""

from reconciler.model.ids import NodeName
from reconciler.model.snapshot import ClusterState
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_LABELS = {"app": "agent"}


def test_new_nodes_are_counted_without_what_daemons_take(scene: Scene) -> None:
    """Two pods that only fit beside no daemon would share one node, and one stay pending."""
    scene.open(FleetShape(size="small"))
    agent = pod_spec(
        "800m", nodeSelector={"sector": scene.name}, tolerations=[{"operator": "Exists"}]
    )
    scene.create("DaemonSet", "agent", template(_LABELS, agent))
    spec = pod_spec("1600m", restartPolicy="Never")
    job = {"parallelism": 4, "completions": 4, "template": _slow(spec)}
    scene.create("Job", "work", job)
    scene.until(lambda _: len(scene.running()) == 4, "all pods run at once")
    used = {pod.node_name for pod in scene.running()}

    def agents(state: ClusterState) -> set[NodeName | None]:
        own = (p for p in state.pods if p.daemon and p.key.namespace == scene.name)
        return {pod.node_name for pod in own if pod.phase == "Running"}

    scene.until(lambda state: used <= agents(state), "a daemon runs beside each")
    assert len(scene.nodes()) == len(used) == sum(scene.targets().values())


def _slow(spec: dict[str, object]) -> dict[str, object]:
    """Runs until the test is over."""
    annotations = {"sandbox.fleet-reconciler.io/duration": "600"}
    return {"metadata": {"annotations": annotations}, "spec": spec}

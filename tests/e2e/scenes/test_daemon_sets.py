"""DaemonSets take their part of every new node."""

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
    state = scene.until(lambda _: len(scene.running()) == 4, "all pods run at once")
    used = {pod.node_name for pod in scene.running()}
    agents = {
        pod.node_name
        for pod in state.pods
        if pod.daemon and pod.key.namespace == scene.name and pod.phase == "Running"
    }
    assert used <= agents
    assert len(scene.nodes()) == len(used) == sum(scene.targets().values())


def _slow(spec: dict[str, object]) -> dict[str, object]:
    """Runs until the test is over."""
    annotations = {"sandbox.fleet-reconciler.io/duration": "600"}
    return {"metadata": {"annotations": annotations}, "spec": spec}

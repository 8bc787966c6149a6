"""A kubelet that falls silent while its instance runs on."""

from reconciler.sandbox.cluster.settings import KUBELET, KUBELET_STOPPED
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_CONFIG = "unready_time: 5s\ninstance_init_time: 20s\nscale_in: {idle_threshold: 300s}"


def test_node_that_stays_unready_is_replaced(scene: Scene) -> None:
    """A dead node that counts as capacity keeps its pods waiting for ever."""
    # A node that is younger than instance_init_time counts as still launching.
    scene.open(FleetShape(target=1), config=_CONFIG)
    spec = pod_spec("1")
    scene.create("Deployment", "web", {"replicas": 2, **template({"app": "web"}, spec)})
    scene.until(lambda _: len(scene.running()) == 2, "both run")
    (silent,) = scene.nodes()
    scene.annotate_node(silent, {KUBELET: KUBELET_STOPPED})
    scene.until(lambda _: any(not n.ready for n in scene.nodes()), "the node is not Ready")
    scene.until(
        lambda _: [n.name for n in scene.ready_nodes()] not in ([], [silent.name]),
        "another node is Ready",
    )
    assert [action["node"] for action in scene.actions("terminate-instance")] == [silent.name]
    assert scene.targets() == {f"{scene.name}-small": 1}

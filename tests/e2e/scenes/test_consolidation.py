"""A node that is larger than its pods need, and a smaller one that would do."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_CONFIG = "consolidation: true\nscale_in: {idle_threshold: 15s, unneeded_time: 2s, settle_time: 0s}"


def test_larger_node_is_replaced_by_a_smaller_one(scene: Scene) -> None:
    """kube-scheduler has to put the pods where they were bought for; nothing may go in circles."""
    scene.open(FleetShape(), FleetShape(size="medium", target=1), config=_CONFIG)
    spec = template({"app": "web"}, pod_spec("500m", memory="8Gi"))
    scene.create("Deployment", "web", {"replicas": 2, **spec})
    wanted = {f"{scene.name}-small": 1, f"{scene.name}-medium": 0}
    scene.until(
        lambda _: scene.targets() == wanted and len(scene.nodes()) == 1, "a smaller node is left"
    )
    scene.until(lambda _: len(scene.running()) == len(scene.pods()) == 2, "all run there")
    scene.until_planned_again()
    assert scene.targets() == wanted
    raised = [a for a in scene.actions("set-capacity") if a["policy"] == "consolidation"]
    assert len(raised) == 1
    assert len(scene.actions("terminate-instance")) == 1

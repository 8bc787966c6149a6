"""Nodes that are more than half full, and one larger node that would do for all of them."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_CONFIG = "consolidation: true\nscale_in: {idle_threshold: 15s, unneeded_time: 2s}"


def test_several_nodes_become_one_larger_one(scene: Scene) -> None:
    """kube-scheduler has to put the pods where they were bought for; nothing may go in circles."""
    scene.open(FleetShape(target=3), FleetShape(size="medium"), config=_CONFIG)
    spec = template({"app": "web"}, pod_spec("500m", memory="16Gi"))
    scene.create("Deployment", "web", {"replicas": 3, **spec})
    scene.until(lambda _: len({p.node_name for p in scene.running()}) == 3, "one on each node")
    wanted = {f"{scene.name}-small": 0, f"{scene.name}-medium": 1}
    scene.until(
        lambda _: scene.targets() == wanted and len(scene.nodes()) == 1, "one larger node is left"
    )
    scene.until(lambda _: len(scene.running()) == len(scene.pods()) == 3, "all run there")
    scene.until_planned_again()
    assert scene.targets() == wanted
    raised = [a for a in scene.actions("set-capacity") if a["policy"] == "consolidation"]
    assert len(raised) == 1
    assert len(scene.actions("terminate-instance")) == 3

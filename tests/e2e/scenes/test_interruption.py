"""EC2 announces through EventBridge and SQS that it takes a node back in two minutes."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template


def test_interrupted_node_is_replaced_once_before_it_is_ended(scene: Scene) -> None:
    """Its pods would die with it, and EC2 would launch a node beside the one that was bought."""
    queue = f"interruption: {{queue_url: '{scene.interruption_queue()}'}}"
    scene.open(FleetShape(target=1), config=f"scale_in: {{idle_threshold: 300s}}\n{queue}")
    spec = pod_spec("1")
    scene.create("Deployment", "web", {"replicas": 2, **template({"app": "web"}, spec)})
    scene.until(lambda _: len(scene.running()) == 2, "both run")
    (noticed,) = scene.nodes()
    scene.interrupt(noticed)
    scene.until(
        lambda _: (
            [n.name for n in scene.ready_nodes()] not in ([], [noticed.name])
            and noticed.name not in {n.name for n in scene.nodes()}
            and len(scene.running()) == 2
        ),
        "both run on another node, and the noticed one is gone",
    )
    assert [a["node"] for a in scene.actions("terminate-instance")] == [noticed.name]
    assert len(scene.actions("set-capacity")) == 1
    assert scene.targets() == {f"{scene.name}-small": 1}
    assert len(scene.nodes()) == 1
    scene.until(lambda _: scene.queued() == 0, "every message was dealt with and deleted")
    settled = [key for e in scene.events("notices_settled") for key in e["notices"]]
    assert "spot-interruption acted" in settled

"""A spot notice on a node, two minutes before EC2 takes it."""

from datetime import UTC, datetime, timedelta

from reconciler.model.actions import INTERRUPTION
from reconciler.planner.text import rfc3339
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_CONFIG = "scale_in: {idle_threshold: 300s}"


def test_interrupted_node_is_replaced_once_before_it_is_ended(scene: Scene) -> None:
    """Its pods would die with it, and EC2 would launch a node beside the one that was bought."""
    scene.open(FleetShape(target=1), config=_CONFIG)
    spec = pod_spec("1")
    scene.create("Deployment", "web", {"replicas": 2, **template({"app": "web"}, spec)})
    scene.until(lambda _: len(scene.running()) == 2, "both run")
    (noticed,) = scene.nodes()
    deadline = datetime.now(UTC) + timedelta(seconds=110)  # noqa: TID251 - the server's own day
    scene.annotate_node(noticed, {INTERRUPTION: f"terminate/{rfc3339(deadline)}"})
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

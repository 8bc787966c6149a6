"""Pods that must be near each other by zone, on fleets whose zone EC2 chooses."""

from tests.e2e.scene import FleetShape, Scene, near_each_other, pod_spec, template

_LABELS = {"app": "ring"}


def test_group_is_bound_together_in_a_zone_that_ec2_chooses(scene: Scene) -> None:
    """A first node that takes a part of the group would leave the rest waiting."""
    scene.open(FleetShape(size="small", most=6), FleetShape(size="medium", most=6))
    spec = pod_spec("1500m", affinity=near_each_other(_LABELS))
    scene.create("Deployment", "ring", {"replicas": 3, **template(_LABELS, spec)})
    scene.until(lambda _: len(scene.running()) == 3, "the whole group runs")
    assert len(scene.zones()) == 1
    assert scene.targets() == {f"{scene.name}-small": 0, f"{scene.name}-medium": 1}

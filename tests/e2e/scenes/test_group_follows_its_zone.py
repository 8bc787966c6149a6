"""Pods that must be near each other by zone, on more than one node."""

from tests.e2e.scene import FleetShape, Scene, near_each_other, pod_spec, template

_LABELS = {"app": "ring"}


def test_group_that_grows_gets_its_nodes_in_the_zone_where_it_began(scene: Scene) -> None:
    """A node in another zone would be bought for pods that cannot run there."""
    scene.open(
        FleetShape(zone="us-west-2a", most=4),
        FleetShape(zone="us-west-2b", most=4),
    )
    spec = pod_spec("2", affinity=near_each_other(_LABELS))
    scene.create("Deployment", "ring", {"replicas": 1, **template(_LABELS, spec)})
    scene.until(lambda _: len(scene.running()) == 1, "the first of the group runs")
    (first,) = scene.zones()
    scene.patch("Deployment", "ring", {"replicas": 4})
    scene.until(lambda _: len(scene.running()) == 4, "the whole group runs")
    assert scene.zones() == {first}
    elsewhere = "us-west-2a" if first == "us-west-2b" else "us-west-2b"
    assert scene.targets()[f"{scene.name}-small-{elsewhere}"] == 0

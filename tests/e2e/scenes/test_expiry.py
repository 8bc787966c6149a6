"""A node that is older than its fleet's `expire_after`."""

import pytest

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_CONFIG = "scale_in: {idle_threshold: 300s, settle_time: 5s}"


@pytest.mark.nightly
def test_expired_node_is_replaced_before_its_pods_move(scene: Scene) -> None:
    """Its pods would wait for a boot; and nodes that never go never get a new image."""
    scene.open(FleetShape(target=1, expire_after="45s"), config=_CONFIG)
    spec = pod_spec("1")
    scene.create("Deployment", "web", {"replicas": 2, **template({"app": "web"}, spec)})
    scene.until(lambda _: len(scene.running()) == 2, "both run")
    (first,) = scene.nodes()
    scene.until(
        lambda _: first.name not in {n.name for n in scene.nodes()} and len(scene.running()) == 2,
        "both run on another node, and the first one is gone",
    )
    bought, *_ = scene.actions("set-capacity")
    assert (bought["before"], bought["after"], bought["policy"]) == (1, 2, "expiry")
    moved = [a for a in scene.actions("evict-pod") if a["node"] == first.name]
    assert len(moved) == 2
    assert {a["policy"] for a in moved} == {"expiry"}
    ended = next(a for a in scene.actions("terminate-instance") if a["node"] == first.name)
    assert ended["policy"] == "expiry"
    assert bought["at"] < moved[0]["at"] < ended["at"]

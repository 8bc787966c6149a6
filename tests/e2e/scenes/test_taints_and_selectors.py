"""Fleets with taints and pods that select: each gets the nodes meant for it, and no others."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def test_each_pod_gets_a_node_of_the_fleet_it_tolerates_or_selects(scene: Scene) -> None:
    """A tainted node bought for a pod that does not tolerate it costs and serves nobody."""
    scene.open(FleetShape(size="small"), FleetShape(size="medium", taints=(_TAINT,)))
    toleration = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    plain = pod_spec("1")
    tolerant = pod_spec("1", tolerations=[toleration], nodeSelector={"size": "medium"})
    selective = pod_spec("1", nodeSelector={"size": "small"})
    for name, spec in (("plain", plain), ("tolerant", tolerant), ("selective", selective)):
        scene.create("Deployment", name, {"replicas": 2, **template({"app": name}, spec)})
    scene.until(lambda _: len(scene.running()) == 6, "all run")
    sizes = {node.name: node.labels["size"] for node in scene.nodes()}
    found = {
        name: {
            sizes[p.node_name] for p in scene.running() if p.labels["app"] == name and p.node_name
        }
        for name in ("plain", "tolerant", "selective")
    }
    assert found == {"plain": {"small"}, "tolerant": {"medium"}, "selective": {"small"}}

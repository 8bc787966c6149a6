"""A StatefulSet whose volumes are each in one zone."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_LABELS = {"app": "db"}
_CLASS = {
    "metadata": {"name": "zonal"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}
_ZONE = "topology.kubernetes.io/zone"


def test_pods_come_back_to_the_zones_of_their_volumes(scene: Scene) -> None:
    """A node in another zone would be bought for a volume that cannot be attached there."""
    scene.open(
        FleetShape(zone="us-west-2a", most=3),
        FleetShape(zone="us-west-2b", most=3),
    )
    scene.create_cluster_wide("/apis/storage.k8s.io/v1/storageclasses", _CLASS)
    spread = {
        "maxSkew": 1,
        "minDomains": 2,  # else both go to the zone whose node is ready first
        "topologyKey": _ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": _LABELS},
    }
    container = pod_spec("1500m", topologySpreadConstraints=[spread])
    container["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "zonal",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    body = {
        "replicas": 2,
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [claim],
        **template(_LABELS, container),
    }
    scene.create("StatefulSet", "db", body)
    scene.until(lambda _: len(scene.running()) == 2, "both replicas run")
    zones = _zones(scene)
    assert sorted(zones.values()) == ["us-west-2a", "us-west-2b"]
    scene.patch("StatefulSet", "db", {"replicas": 0})
    scene.until_empty()
    scene.patch("StatefulSet", "db", {"replicas": 2})
    scene.until(lambda _: len(scene.running()) == 2, "both replicas run again")
    assert _zones(scene) == zones


def _zones(scene: Scene) -> dict[str, str]:
    """The zone that each pod runs in."""
    by_node = {node.name: node.labels[_ZONE] for node in scene.nodes()}
    return {p.key.name: by_node[p.node_name] for p in scene.running() if p.node_name}

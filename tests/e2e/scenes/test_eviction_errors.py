"""Evictions that the API server refuses for reasons of its own."""

from reconciler.model.actions import DRAIN_FAILED, DRAINING_TAINT
from reconciler.model.cluster import Node
from tests.e2e.scene import FleetShape, Scene, pod_spec, template

_SCALE_IN = (
    "scale_in: {idle_threshold: 2s, unneeded_time: 2s, settle_time: 0s, utilization_threshold: 0.6,"
    " pod_eviction_timeout: 4s}"
)
_GROUP = "/apis/admissionregistration.k8s.io/v1"


def test_drain_whose_evictions_are_denied_is_given_up_and_rests(scene: Scene) -> None:
    """A node that stays tainted for a drain that never ends is capacity lost in silence."""
    scene.open(FleetShape(target=2), config=_SCALE_IN)
    _deny_evictions(scene)
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    spec = pod_spec("300m", topologySpreadConstraints=[spread])
    scene.create("Deployment", "web", {"replicas": 2, **template({"app": "web"}, spec)})
    scene.until(lambda _: len({p.node_name for p in scene.running()}) == 2, "one on each node")
    # Its failure is noted before its taint goes, so that a crash between the two loses no rest.
    scene.until(lambda _: any(_rests(node) for node in scene.nodes()), "the drain is given up")
    assert len(scene.running()) == 2
    assert not scene.actions("terminate-instance")


def _rests(node: Node) -> bool:
    draining = any(taint.key == DRAINING_TAINT for taint in node.taints)
    return DRAIN_FAILED in node.annotations and not draining


def _deny_evictions(scene: Scene) -> None:
    """An admission policy of the owners of the namespace."""
    match = {
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods/eviction"],
                "operations": ["CREATE"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.name}},
    }
    policy = {
        "metadata": {"name": scene.name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": match,
            "validations": [{"expression": "false", "message": "not in office hours"}],
        },
    }
    binding = {
        "metadata": {"name": scene.name},
        "spec": {"policyName": scene.name, "validationActions": ["Deny"]},
    }
    scene.create_cluster_wide(f"{_GROUP}/validatingadmissionpolicies", policy)
    scene.create_cluster_wide(f"{_GROUP}/validatingadmissionpolicybindings", binding)

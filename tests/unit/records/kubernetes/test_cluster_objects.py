"""Nodes, budgets, storage: the values that decisions are made from."""

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.cluster import Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.snapshot import Ignored
from reconciler.model.volumes import CsiNode
from reconciler.records.kubernetes.encoding import encode_daemon_set
from tests.unit.records.kubernetes.kube import decode, decode_node, node_json, object_json


def test_node_offers_its_allocatable_and_names_its_instance() -> None:
    """Capacity instead of allocatable would overfill every node."""
    node = decode_node(
        taints=[{"key": "spot", "effect": "NoSchedule"}], status={"capacity": {"cpu": "4"}}
    )
    assert node.allocatable == {"cpu": 3920, "memory": 28 * 1024**3, "pods": 58}
    assert node.capacity == {"cpu": 4000}
    assert node.instance_id == "i-0abc"
    assert node.taints == (Taint(key="spot", effect="NoSchedule"),)
    assert node.ready
    assert node.ready_changed_at == datetime(2026, 1, 31, 11, tzinfo=UTC)


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_node_whose_kubelet_is_not_well_is_not_ready(status: str) -> None:
    """Pods would be promised to a dead node."""
    assert not decode_node(status={"conditions": [{"type": "Ready", "status": status}]}).ready


@pytest.mark.parametrize(
    "broken",
    [
        {"taints": 5},
        {"taints": [{"key": "a", "effect": "Sometimes"}]},
        {"status": {"allocatable": {"cpu": "-4"}}},
        {"status": {"allocatable": {"memory": "lots"}}},
        {"metadata": {"labels": []}},
    ],
)
def test_malformed_node_stands_for_itself(broken: dict[str, Any]) -> None:
    """A node that vanishes from the picture has its instance called stuck and ended."""
    state = decode(node_json(**broken))
    (node,) = state.nodes
    assert (node.name, node.unreadable, node.instance_id) == ("ip-10-0-0-7", True, "i-0abc")
    assert state.ignored == (Ignored(code="unreadable", kind="Node", name="ip-10-0-0-7"),)
    assert state.ignored[0].detail  # why, for whoever has to correct it


@pytest.mark.parametrize(
    ("provider_id", "instance_id"),
    [
        ("aws:///us-west-2a/i-0abc", "i-0abc"),
        ("aws:////i-0abc", "i-0abc"),
        ("i-0abc", "i-0abc"),
        ("aws:///us-west-2a/1/fargate-ip-10-0-0-7", None),
        ("kind://docker/i-0abc", None),
        ("", None),
    ],
)
def test_provider_id_names_the_instance(provider_id: str, instance_id: str | None) -> None:
    """A node that is tied to no instance is never ended, and its instance looks stuck."""
    assert decode_node(providerID=provider_id).instance_id == instance_id


@pytest.mark.parametrize("name", [None, 7, "", ["x"]])
def test_node_without_a_readable_name_stands_for_its_instance(name: Any) -> None:
    """Its instance would be called stuck and ended with everything that runs there."""
    state = decode(node_json(metadata={"name": name}))
    (node,) = state.nodes
    assert (node.unreadable, node.instance_id) == (True, "i-0abc")
    assert [(i.code, i.kind) for i in state.ignored] == [("unreadable", "Node")]


def test_node_annotations_of_heartbeats_are_left_out() -> None:
    """Each of them would wake the loop."""
    annotations = {
        "fleet-reconciler.io/unneeded-since": "t",
        "csi.volume.kubernetes.io/nodeid": "x",
    }
    node = decode_node(metadata={"annotations": annotations})
    assert node.annotations == {"fleet-reconciler.io/unneeded-since": "t"}


@pytest.mark.parametrize(
    ("api", "selector", "covers"),
    [
        ("policy/v1", {}, True),
        ("policy/v1", None, False),
        ("policy/v1beta1", {}, False),
        ("policy/v1", {"matchLabels": {"app": "web"}}, True),
    ],
)
def test_budget_selector_null_and_empty_differ(api: str, selector: Any, covers: bool) -> None:
    """An empty selector guards the whole namespace."""
    budget = object_json(
        "PodDisruptionBudget",
        api=api,
        metadata={"namespace": "web"},
        spec={"selector": selector},
        status={"disruptionsAllowed": 2},
    )
    (found,) = decode(budget).budgets
    assert found.disruptions_allowed == 2
    assert (found.selector is not None and found.selector.matches({"app": "web"})) is covers


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
        {"status": {"disruptionsAllowed": -1}},
        {"status": {"disruptionsAllowed": "all"}},
    ],
)
def test_malformed_budget_stands_for_itself(broken: dict[str, Any]) -> None:
    """Skipping it would let evictions past it."""
    budget = object_json(
        "PodDisruptionBudget", "b", api="policy/v1", metadata={"namespace": "web"}, **broken
    )
    (found,) = decode(budget).budgets
    assert (found.namespace, found.unreadable, found.disruptions_allowed) == ("web", True, 0)


@pytest.mark.parametrize(("observed", "allowed"), [(1, 0), (2, 3), (None, 3)])
def test_budget_that_changed_since_it_was_counted_allows_nothing(
    observed: int | None, allowed: int
) -> None:
    """A drain would begin on a count that the Eviction API refuses to use."""
    budget = object_json(
        "PodDisruptionBudget",
        api="policy/v1",
        metadata={"namespace": "web", "generation": 2},
        spec={"selector": {}},
        status={"disruptionsAllowed": 3, "observedGeneration": observed},
    )
    (found,) = decode(budget).budgets
    assert found.disruptions_allowed == allowed


def test_budget_that_no_controller_has_counted_yet_allows_nothing() -> None:
    """A fresh budget would be overrun before its first count."""
    budget = object_json("PodDisruptionBudget", api="policy/v1", spec={"selector": {}})
    assert decode(budget).budgets[0].disruptions_allowed == 0


def test_in_tree_ebs_is_seen_as_the_csi_driver() -> None:
    """Attach limits count per driver: migrated volumes are the driver's."""
    volume = object_json(
        "PersistentVolume",
        spec={
            "awsElasticBlockStore": {"volumeID": "aws://us-west-2a/vol-1"},
            "capacity": {"storage": "8Gi"},
            "claimRef": {"namespace": "db", "name": "data"},
            "storageClassName": "gp2",
        },
    )
    storage_class = object_json(
        "StorageClass",
        "gp2",
        api="storage.k8s.io/v1",
        provisioner="kubernetes.io/aws-ebs",
        volumeBindingMode="WaitForFirstConsumer",
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    )
    state = decode(volume, storage_class)
    assert state.volumes[0].csi_driver == "ebs.csi.aws.com"
    assert state.volumes[0].volume_handle == "vol-1"
    assert state.volumes[0].claim == ("db", "data")
    assert state.volumes[0].capacity_bytes == 8 * 1024**3
    (found,) = state.storage_classes
    assert found.provisioner == "ebs.csi.aws.com"
    assert found.default
    assert found.wait_for_first_consumer
    assert found.allowed_topologies[0].matches({"zone": "a"}, "n")


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        ({}, {}, None),
        ({"storageClassName": ""}, {}, ""),
        ({}, {"volume.beta.kubernetes.io/storage-class": "old"}, "old"),
    ],
)
def test_claim_tells_default_class_from_no_class(
    spec: dict[str, Any], annotations: dict[str, str], expected: str | None
) -> None:
    """A claim without a class waits for a volume, one with the default class gets one made."""
    claim = object_json(
        "PersistentVolumeClaim",
        spec=spec,
        metadata={
            "namespace": "db",
            "annotations": {**annotations, "volume.kubernetes.io/selected-node": "n1"},
        },
    )
    (found,) = decode(claim).claims
    assert found.storage_class == expected
    assert found.selected_node == "n1"


def test_csi_node_without_a_count_has_no_limit() -> None:
    """No limit known is not a limit of zero."""
    drivers = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 25}}, {"name": "efs"}]
    node = object_json("CSINode", "n1", api="storage.k8s.io/v1", spec={"drivers": drivers})
    limits = FrozenMap[str, int | None]({"ebs.csi.aws.com": 25, "efs": None})
    assert decode(node).csi_nodes == (CsiNode(name=NodeName("n1"), limits=limits),)


def test_daemonset_template_is_decoded_like_a_pod() -> None:
    """What lands on each new node is taken off what it offers."""
    template = {"spec": {"containers": [{"resources": {"limits": {"cpu": "100m"}}}]}}
    daemon_set = object_json(
        "DaemonSet",
        api="apps/v1",
        metadata={"namespace": "kube-system"},
        spec={"template": template},
    )
    assert decode(daemon_set).daemon_sets[0].spec.requests == {"cpu": 100, "pods": 1}


@pytest.mark.parametrize("metadata", [{}, {"labels": None}, {"labels": {"app": "agent"}}])
def test_labels_of_a_daemonsets_pods_are_read_and_written(metadata: dict[str, Any]) -> None:
    """Other pods' rules count the pod that each new node comes with."""
    template = {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}}
    read = object_json("DaemonSet", api="apps/v1", spec={"template": template})
    (found,) = decode(read).daemon_sets
    assert found.labels == (metadata.get("labels") or {})
    (again,) = decode(encode_daemon_set(found)).daemon_sets
    assert again == found


@pytest.mark.parametrize(
    ("status", "none"),
    [
        ({}, False),
        ({"desiredNumberScheduled": 0, "currentNumberScheduled": 0}, False),
        ({"desiredNumberScheduled": 40, "currentNumberScheduled": 1}, False),
        ({"desiredNumberScheduled": 40, "currentNumberScheduled": 0}, True),
    ],
)
def test_daemonset_that_has_no_pod_on_any_node_makes_none(
    status: dict[str, int], *, none: bool
) -> None:
    """A ResourceQuota forbids its pods: new nodes would look smaller for nothing."""
    template = {"spec": {"containers": [{"name": "c"}]}}
    read = object_json("DaemonSet", api="apps/v1", spec={"template": template}, status=status)
    (found,) = decode(read).daemon_sets
    assert found.makes_no_pods is none
    (again,) = decode(encode_daemon_set(found)).daemon_sets
    assert again == found


@pytest.mark.parametrize(
    ("named", "priority"),
    [({"priorityClassName": "system-node-critical"}, 2_000_001_000),
     ({"priorityClassName": "web"}, 0), ({"priorityClassName": "web", "priority": 7}, 7)],
)  # fmt: skip
def test_template_has_the_priority_of_a_built_in_class(
    named: dict[str, Any], priority: int
) -> None:
    """Only admission writes the number, and only into pods: the CNI's would look the least."""
    spec = {"containers": [{"name": "c"}], **named}
    read = object_json("DaemonSet", api="apps/v1", spec={"template": {"spec": spec}})
    assert decode(read).daemon_sets[0].spec.priority == priority


@pytest.mark.parametrize(
    ("status", "completed", "bound"),
    [
        ({"phase": "Bound"}, True, True),
        ({"phase": "Pending"}, True, True),  # the phase is written last
        ({"phase": "Lost"}, True, False),
        ({"phase": "Pending"}, False, False),
        ({"phase": "Bound"}, False, True),
        ({}, False, True),
        (None, False, True),
    ],
)
def test_claim_that_names_a_volume_says_whether_it_is_bound_to_it(
    status: dict[str, str] | None, completed: bool, bound: bool
) -> None:
    """Nodes would be bought for a claim that waits for ever for the volume it names."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if completed else {}
    more: dict[str, Any] = {} if status is None else {"status": status}
    body = object_json(
        "PersistentVolumeClaim",
        spec={"volumeName": "pv"},
        metadata={"namespace": "db", "annotations": annotations},
        **more,
    )
    (found,) = decode(body).claims
    assert (found.volume_name, found.volume_bound) == ("pv", bound)


def test_claim_says_what_volume_it_wants() -> None:
    """A local disk that is too small or raw would be taken for a fitting one."""
    spec = {
        "storageClassName": "local",
        "volumeMode": "Block",
        "resources": {"requests": {"storage": "10Gi"}},
        "selector": {"matchLabels": {"tier": "fast"}},
    }
    (claim,) = decode(object_json("PersistentVolumeClaim", spec=spec)).claims
    assert (claim.request_bytes, claim.block) == (10 * 2**30, True)
    assert claim.selector is not None
    assert claim.selector.matches({"tier": "fast"})
    disk = {"capacity": {"storage": "10Gi"}, "volumeMode": "Block"}
    (volume,) = decode(object_json("PersistentVolume", spec=disk)).volumes
    assert (volume.capacity_bytes, volume.block, volume.deleting) == (10 * 2**30, True, False)

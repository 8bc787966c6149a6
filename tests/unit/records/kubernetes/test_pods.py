"""Pods as the planner sees them."""

import gc
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from reconciler.model.cluster import HostPort, Owner, PodSpec
from reconciler.model.containers import ContainerState
from reconciler.records.kubernetes import ObjectDecoder, decode_cluster, split_documents
from reconciler.records.kubernetes.encoding import encode_pod
from reconciler.records.snapshot import strip_object
from tests.unit.records.kubernetes.kube import decode, decode_pod, pod_json


def injected(token: str) -> dict[str, Any]:
    """What admission adds to each replica under a name of its own."""
    return {
        "volumes": [{"name": f"kube-api-access-{token}", "projected": {"sources": []}}],
        "containers": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": "1"}},
                "env": [{"name": "POD", "value": token}],
                "volumeMounts": [{"name": f"kube-api-access-{token}", "mountPath": "/var/run"}],
            }
        ],
    }


def test_replicas_on_different_nodes_share_one_spec_and_labels() -> None:
    """Without sharing, grouping 30,000 pods compares 30,000 specs in every cycle."""
    labels = {"labels": {"app": "web"}}
    replicas = [
        pod_json(f"web-{n}", metadata=labels, nodeName=f"node-{n}", **injected(f"x{n}"))
        for n in range(3)
    ]
    pods = decode(*replicas).pods
    assert len({id(pod.spec) for pod in pods}) == 1
    assert len({id(pod.labels) for pod in pods}) == 1
    assert [pod.node_name for pod in pods] == ["node-0", "node-1", "node-2"]


def test_equal_specs_written_differently_are_one_object() -> None:
    """Two Deployments with the same needs are one class, however their JSON is ordered."""
    first = pod_json("a", nodeSelector={"sector": "p", "size": "small"})
    second = pod_json("b", nodeSelector={"size": "small", "sector": "p"})
    one, two = decode(first, second).pods
    assert one.spec is two.spec


def test_one_decoder_shares_specs_over_several_calls() -> None:
    """A pod that arrives by watch must join the class of those that were listed."""
    decoder = ObjectDecoder()
    bodies = [
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"},"spec":{}}' % n
        for n in (b"a", b"b")
    ]
    states = [decode_cluster(split_documents(body, "f"), decoder) for body in bodies]
    assert states[0].pods[0].spec is states[1].pods[0].spec


def test_daemonset_pods_keep_the_node_they_are_made_for() -> None:
    """Without its metadata.name affinity, a DaemonSet's pod would look at home anywhere."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    owner = {"kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    pod = decode_pod(affinity=affinity, metadata={"ownerReferences": [owner]})
    assert pod.daemon
    assert pod.spec.node_affinity is not None
    assert pod.spec.node_affinity.matches({}, "n1")
    assert not pod.spec.node_affinity.matches({}, "n2")


def test_affinity_without_terms_matches_nothing_but_absent_affinity_matches_all() -> None:
    """Empty and missing are opposites in the scheduler."""
    empty: dict[str, Any] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
        }
    }
    affinity = decode_pod(affinity=empty).spec.node_affinity
    assert affinity is not None
    assert not affinity.matches({"a": "b"}, "n")
    assert decode_pod(affinity=None).spec.node_affinity is None


def test_pod_affinity_terms_keep_null_and_empty_selectors_apart() -> None:
    """A null selector matches no pod, an empty one every pod."""
    terms = [
        {"topologyKey": "zone", "labelSelector": None, "namespaceSelector": {}},
        {"topologyKey": "zone", "labelSelector": {}, "namespaces": ["a"]},
    ]
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    null, empty = decode_pod(affinity=anti).spec.pod_anti_affinity
    assert null.selector is None
    assert null.namespace_selector is not None
    assert empty.selector is not None
    assert empty.namespaces == {"a"}
    assert empty.namespace_selector is None


def test_topology_spread_defaults_are_those_of_the_api() -> None:
    """A wrong default policy counts domains that the scheduler leaves out."""
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    (spread,) = decode_pod(topologySpreadConstraints=[constraint]).spec.topology_spread
    assert spread.hard
    assert spread.honor_node_affinity
    assert not spread.honor_node_taints
    assert spread.min_domains == 1


def test_host_network_takes_container_ports_on_the_node() -> None:
    """Two such pods on one node would fight for the port."""
    ports = [{"containerPort": 9100}, {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]
    spec = decode_pod(hostNetwork=True, containers=[{"ports": ports}]).spec
    assert spec.host_ports == (
        HostPort(address="0.0.0.0", protocol="TCP", port=9100),  # noqa: S104 - a collision, no bind
        HostPort(address="0.0.0.0", protocol="UDP", port=53),  # noqa: S104 - as above
    )
    assert len(decode_pod(containers=[{"ports": ports}]).spec.host_ports) == 1


@pytest.mark.parametrize(
    ("volume", "local"),
    [
        ({"emptyDir": {}}, True),
        ({"emptyDir": {"medium": "Memory"}}, False),
        ({"hostPath": {"path": "/var"}}, True),
        ({"configMap": {"name": "c"}}, False),
    ],
)
def test_local_storage_is_what_would_be_lost_by_moving(volume: dict[str, Any], local: bool) -> None:
    """Scale-in would throw away data, or never move a pod with a memory-backed scratch."""
    assert decode_pod(volumes=[{"name": "v", **volume}]).spec.local_storage is local


@pytest.mark.parametrize(
    ("policy", "ends"), [(None, False), ("Always", False), ("OnFailure", True), ("Never", True)]
)
def test_restart_policy_tells_whether_a_pod_ends_by_itself(
    policy: str | None, *, ends: bool
) -> None:
    """Work in flight would be taken for a service; absent, the API server's default holds."""
    spec = decode_pod(restartPolicy=policy).spec if policy else decode_pod().spec
    assert spec.ends_by_itself is ends
    if policy == "Always":
        assert spec is not decode_pod(restartPolicy="Never").spec


def test_host_port_on_one_address_keeps_the_address() -> None:
    """Two pods on one port of different addresses would need a node each."""
    ports = [{"containerPort": 53, "hostPort": 53, "hostIP": "10.0.0.1"}]
    spec = decode_pod(containers=[{"ports": ports}]).spec
    assert spec.host_ports == (HostPort(address="10.0.0.1", protocol="TCP", port=53),)


def test_claims_and_in_tree_volumes_are_named() -> None:
    """A generic ephemeral volume's claim is named after pod and volume."""
    pod = decode_pod(
        name="db-0",
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "old", "awsElasticBlockStore": {"volumeID": "aws://us-west-2a/vol-1"}},
        ],
    )
    assert pod.claims == ("data-db-0", "db-0-scratch")
    assert pod.ebs_volume_ids == ("vol-1",)


def test_only_annotations_that_decide_are_kept() -> None:
    """Kubectl's copy of each manifest would double the memory held for pods."""
    annotations = {
        "fleet-reconciler.io/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "kubernetes.io/config.mirror": "hash",
    }
    pod = decode_pod(metadata={"annotations": annotations})
    assert pod.annotations == {
        "fleet-reconciler.io/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    }
    assert pod.mirror


def test_owner_is_the_controller_and_not_the_first_reference() -> None:
    """A pod owned by a backup tool as well still belongs to its ReplicaSet."""
    references = [
        {"kind": "Backup", "name": "b"},
        {"kind": "ReplicaSet", "name": "web-7c9", "uid": "u", "controller": True},
    ]
    pod = decode_pod(metadata={"ownerReferences": references})
    assert pod.owner == Owner(kind="ReplicaSet", name="web-7c9", uid="u")


def test_finished_pod_tells_when_its_last_container_ended() -> None:
    """The idle timer of an annotated node starts there."""
    states = [
        {"state": {"terminated": {"finishedAt": f"2026-01-31T11:{minute}:00Z"}}}
        for minute in (10, 25)
    ]
    pod = decode_pod(status={"phase": "Succeeded", "containerStatuses": states})
    assert pod.finished_at == datetime(2026, 1, 31, 11, 25, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ({"status": "True", "lastTransitionTime": "2026-01-31T12:00:00Z"}, True),
        ({"status": "False", "lastTransitionTime": "2026-01-31T12:00:00Z"}, False),
        ({"status": "True", "lastTransitionTime": None}, False),
    ],
)
def test_time_at_which_a_pod_was_bound_is_read_and_written(
    condition: dict[str, Any], told: bool
) -> None:
    """A pod that waited long and was bound just now would look as old as it is."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T12:05:00Z"}
    status = {"conditions": [ready, {"type": "PodScheduled", **condition}]}
    (pod,) = decode(pod_json(status=status)).pods
    assert pod.scheduled_at == (datetime(2026, 1, 31, 12, tzinfo=UTC) if told else None)
    assert decode(encode_pod(pod)).pods[0].scheduled_at == pod.scheduled_at


@pytest.mark.parametrize(
    ("spec", "conditions", "left"),
    [
        ({}, [], False),
        ({"schedulerName": ""}, [], False),
        ({"schedulerName": "default-scheduler"}, [], False),
        ({"schedulerName": "volcano"}, [], True),
        ({"schedulerName": "volcano", "nodeName": "n"}, [], False),
        ({"schedulerName": "volcano"}, [("False", "Unschedulable")], False),
        ({"schedulerName": "volcano"}, [("False", "SchedulingGated")], True),
        ({"schedulerName": "volcano"}, [("True", "Unschedulable")], True),
    ],
)
def test_pod_of_another_scheduler_is_left_to_it_until_it_refuses(
    spec: dict[str, Any], conditions: list[tuple[str, str]], left: bool
) -> None:
    """A node would be bought for a pod that Fargate, say, is about to run."""
    told = [{"type": "PodScheduled", "status": s, "reason": r} for s, r in conditions]
    (pod,) = decode(pod_json("p", status={"conditions": told}, **spec)).pods
    assert pod.left_to_scheduler == left
    assert decode(encode_pod(pod)).pods[0].left_to_scheduler == left


def test_gated_deleting_and_nominated_are_seen() -> None:
    """A gated or departing pod must not buy nodes; a nominated one has a place."""
    pod = decode_pod(
        schedulingGates=[{"name": "g"}],
        metadata={"deletionTimestamp": "2026-01-31T12:00:00Z"},
        status={"nominatedNodeName": "n1"},
    )
    assert (pod.gated, pod.deleting, pod.nominated_node_name) == (True, True, "n1")
    assert pod.deletion_at == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "broken",
    [
        {"priority": "high"},
        {"priority": 2**40},
        {"tolerations": {"key": "a"}},
        {"nodeSelector": {"a": 1}},
        {"affinity": {"nodeAffinity": "x"}},
        {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 0}]},
        {"containers": "none"},
        {"metadata": {"labels": {"a": None}}},
        {"metadata": {"creationTimestamp": "yesterday"}},
        {"status": {"phase": "Sleeping"}},
        {"containers": [{"ports": [{"hostPort": 99999}]}]},
    ],
)
def test_malformed_bound_pod_stands_for_itself(broken: dict[str, Any]) -> None:
    """Skipping it would make its node look empty, and the node would be ended."""
    state = decode(pod_json(nodeName="n1", **broken))
    (pod,) = state.pods
    assert (pod.unreadable, pod.node_name, pod.key.name) == (True, "n1", "web-1")
    assert [(each.kind, each.namespace, each.name) for each in state.ignored] == [
        ("Pod", "web", "web-1")
    ]


def test_malformed_pending_pod_is_only_reported() -> None:
    """It asks for nothing that could be computed and holds no node."""
    state = decode(pod_json(priority="high"))
    assert state.pods == ()
    assert state.ignored[0].code == "unreadable"


def test_pod_without_a_name_keeps_its_node() -> None:
    """Whatever is bound to a node makes it not empty."""
    nameless = pod_json(nodeName="n1")
    del nameless["metadata"]["name"]
    assert [pod.node_name for pod in decode(nameless, nameless).pods] == ["n1", "n1"]


@pytest.mark.parametrize(
    ("policy", "expected"), [(None, True), ("PreemptLowerPriority", True), ("Never", False)]
)
def test_preemption_policy_says_whether_a_pod_evicts_others(
    policy: str | None, expected: bool
) -> None:
    """A pod that never preempts would be promised the room of balloon pods."""
    assert decode_pod(preemptionPolicy=policy).spec.preempts == expected


def test_specs_of_pods_that_are_gone_are_forgotten() -> None:
    """Each DaemonSet's pod has a spec of its own: nodes that come and go would fill the memory."""
    decoder, churn = ObjectDecoder(), 24_000
    before = known_specs()
    for number in range(churn):
        gate = {"key": "metadata.name", "operator": "In", "values": [f"node-{number}"]}
        terms = {"nodeSelectorTerms": [{"matchFields": [gate]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        pod = {"metadata": {"name": f"ds-{number}"}, "spec": {"affinity": affinity}}
        assert decoder.decode("Pod", orjson.dumps(pod)) is not None
    assert 0 < known_specs() - before < 17_000


def known_specs() -> int:
    """How many specs this process holds, by whatever table."""
    gc.collect()
    return sum(type(each) is PodSpec for each in gc.get_objects())


def test_restarts_and_what_containers_wait_for_are_read() -> None:
    """The descheduler judges pods by their restarts, their reasons and how they ended."""
    status = {
        "phase": "Failed",
        "reason": "Evicted",
        "qosClass": "Burstable",
        "containerStatuses": [
            {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            {"restartCount": 2, "state": {"terminated": {"reason": "Error", "exitCode": 1}}},
            {"restartCount": 0, "state": {"running": {}}},
        ],
        "initContainerStatuses": [{"restartCount": 7, "state": {}}],
    }
    pod = decode(pod_json("crashing", status=status)).pods[0]
    assert (pod.restarts, pod.reason, pod.qos) == (5, "Evicted", "Burstable")
    assert pod.containers == (
        ContainerState(kind="container", waiting="CrashLoopBackOff", restarts=3),
        ContainerState(kind="container", terminated="Error", exit_code=1, restarts=2),
        ContainerState(kind="init", restarts=7),
    )


SECRET, OLD = "token", "2026-01-31T11:00:00Z"
ENDED = {"exitCode": 1, "reason": "Error", "message": SECRET, "finishedAt": "2026-01-31T12:00:07Z"}


@pytest.mark.parametrize(
    "states",
    [
        {"state": {"running": {}}, "lastState": {"terminated": ENDED}},
        {"state": {"waiting": {}}, "lastState": {"terminated": ENDED}},
        {"state": {"terminated": ENDED}, "lastState": {"terminated": {**ENDED, "finishedAt": OLD}}},
    ],
    ids=["runs-again", "waits", "ended"],
)
def test_it_is_read_when_a_container_last_ended(states: dict[str, Any]) -> None:
    """Between two crashes a container runs: only this tells that it is in a crash loop."""
    told = pod_json("a", status={"containerStatuses": [{"restartCount": 4, **states}]})
    for each in (told, strip_object(told)):
        (state,) = decode(each).pods[0].containers
        assert state.ended_at == datetime(2026, 1, 31, 12, 0, 7, tzinfo=UTC)
    assert SECRET not in str(strip_object(told)), "the last words of a process are its own affair"


def test_pod_of_which_nothing_is_noticeable_has_no_containers() -> None:
    """Most pods are like that: they cost nothing."""
    pod = decode(pod_json("fine", status={"phase": "Running", "qosClass": "Best"})).pods[0]
    assert (pod.restarts, pod.reason, pod.qos, pod.containers) == (0, "", None, ())

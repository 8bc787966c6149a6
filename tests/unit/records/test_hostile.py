"""Whatever is in an object, decoding it ends in a value or in a report, never in an exception."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud, decode_spot_prices
from reconciler.records.snapshot import cloud_snapshot_files, strip_object
from tests.unit.records.aws.aws_answers import fleet_json, group_json, instance_json, reservations
from tests.unit.records.kubernetes.kube import decode, node_json, object_json, pod_json

Path = tuple[str | int, ...]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
POD_TERM = {"topologyKey": "zone", "labelSelector": SELECTOR}

FULL_POD = pod_json(
    nodeName="n1",
    metadata={
        "labels": {"app": "web"},
        "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}],
        "creationTimestamp": "2026-01-31T12:00:00Z",
    },
    nodeSelector={"sector": "p"},
    tolerations=[{"key": "a", "operator": "Exists"}],
    affinity={
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [TERM]},
            PREFERRED: [{"weight": 1, "preference": TERM}],
        },
        "podAntiAffinity": {
            REQUIRED: [POD_TERM],
            PREFERRED: [{"weight": 1, "podAffinityTerm": POD_TERM}],
        },
    },
    topologySpreadConstraints=[{**POD_TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    priority=5,
    overhead={"cpu": "1m"},
    status={
        "phase": "Succeeded",
        "conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-31T12:00:00Z"}],
        "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-01-31T12:00:00Z"}}}],
    },
)
OBJECTS = [
    FULL_POD,
    node_json(taints=[{"key": "a", "effect": "NoSchedule"}]),
    object_json(
        "PodDisruptionBudget",
        api="policy/v1",
        metadata={"namespace": "web"},
        spec={"selector": SELECTOR},
        status={"disruptionsAllowed": 1},
    ),
    object_json(
        "PersistentVolume",
        spec={
            "nodeAffinity": {"required": {"nodeSelectorTerms": [TERM]}},
            "csi": {"driver": "d", "volumeHandle": "h"},
            "capacity": {"storage": "1Gi"},
        },
    ),
    object_json(
        "Lease",
        "fleet-reconciler",
        api="coordination.k8s.io/v1",
        metadata={"annotations": {"fleet-reconciler.io/fleet-state": "{}"}},
    ),
    object_json(
        "DaemonSet", api="apps/v1", spec={"template": {"spec": {"containers": [{"name": "c"}]}}}
    ),
]
ANSWERS: list[dict[str, Any]] = [
    {"Fleets": [fleet_json()]},
    reservations(instance_json()),
    {"AutoScalingGroups": [group_json()]},
    {
        "FleetId": "fleet-1",
        "ActiveInstances": [{"InstanceId": "i-1"}],
        "HistoryRecords": [
            {
                "EventType": "error",
                "Timestamp": "2026-01-31T12:00:00Z",
                "EventInformation": {"EventSubType": "x"},
            }
        ],
    },
    {
        "SpotPriceHistory": [
            {"InstanceType": "t", "SpotPrice": "1", "Timestamp": "2026-01-31T12:00:00Z"}
        ]
    },
]
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(
        [
            "",
            "NaN",
            "9" * 50,
            "1e99",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-12:00",
            "\x00",
        ]
    ),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(found: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a JSON value but its top."""
    if path:
        yield path
    if isinstance(found, dict):
        for key, value in found.items():
            yield from places(value, (*path, key))
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from places(value, (*path, index))


def spoiled(found: dict[str, Any], path: Path, junk: Any) -> dict[str, Any]:
    """The value with junk in one place."""
    result = copy.deepcopy(found)
    parent: Any = result
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = junk
    return result


@st.composite
def spoiled_one_of(draw: st.DrawFn, values: list[dict[str, Any]]) -> dict[str, Any]:
    """One of the values with junk somewhere in it."""
    chosen = draw(st.sampled_from(values))
    return spoiled(chosen, draw(st.sampled_from(list(places(chosen)))), draw(JUNK))


@settings(max_examples=300, deadline=None)
@given(found=spoiled_one_of(OBJECTS))
def test_spoiled_object_is_decoded_or_reported(found: dict[str, Any]) -> None:
    """One object of a thousand that ends the cycle stops the scaling of all."""
    state = decode(found, pod_json("witness", nodeName="n2"))
    assert "witness" in {pod.key.name for pod in state.pods}
    json.dumps(strip_object(found))
    spec = found.get("spec")
    bound = isinstance(spec, dict) and spec.get("nodeName") == "n1"
    if bound and found.get("kind") == "Pod" and found.get("apiVersion") == "v1":
        assert "n1" in {pod.node_name for pod in state.pods}


@settings(max_examples=300, deadline=None)
@given(found=spoiled_one_of(ANSWERS))
def test_spoiled_answer_is_decoded_or_reported(found: dict[str, Any]) -> None:
    """One odd entry of EC2 must not hide the rest of the region."""
    region = Region("us-west-2")
    witness = {"Fleets": [fleet_json("fleet-witness")]}
    state = decode_cloud([(region, found), (region, witness)], cluster="analytics")
    assert "fleet-witness" in {fleet.id for fleet in state.fleets}
    decode_spot_prices([(region, found)])
    cloud_snapshot_files(region, [found])

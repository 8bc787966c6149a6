"""Snapshot files hold what planning reads, and no secret."""

import json
from datetime import UTC, datetime
from typing import Any

from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud, split_answers
from reconciler.records.snapshot import (
    cloud_snapshot_files,
    encode_cluster_snapshot,
    strip_object,
)
from tests.unit.records.aws.aws_answers import fleet_json, instance_json, reservations
from tests.unit.records.kubernetes.kube import decode, decode_body, node_json, object_json, pod_json

SECRET = "hunter2"
REGION = Region("us-west-2")


def telling_pod() -> dict[str, Any]:
    """A pod with a secret in every place where people put them."""
    return pod_json(
        metadata={
            "managedFields": [{"fieldsV1": {SECRET: {}}}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": SECRET,
                "vault/token": SECRET,
                "fleet-reconciler.io/do-not-disrupt": "true",
            },
        },
        containers=[
            {
                "name": "c",
                "resources": {"requests": {"cpu": "1"}},
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "args": [f"--token={SECRET}"],
                "command": ["sh", "-c", f"login {SECRET}"],
                "livenessProbe": {"httpGet": {"httpHeaders": [{"value": SECRET}]}},
            }
        ],
        initContainers=[{"name": "i", "env": [{"name": "A", "value": SECRET}]}],
        volumes=[{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"key": SECRET}}}],
        status={
            "phase": "Failed",
            "message": SECRET,
            "containerStatuses": [{"state": {"terminated": {"message": SECRET}}}],
        },
    )


def test_secrets_of_pods_and_templates_are_left_out() -> None:
    """A snapshot is attached to bug reports."""
    daemon_set = object_json(
        "DaemonSet", api="apps/v1", spec={"template": strip_free(telling_pod())}
    )
    body = encode_cluster_snapshot([telling_pod(), daemon_set])
    assert SECRET not in body.decode()
    assert "PASSWORD" in body.decode()


def telling_storage() -> list[dict[str, Any]]:
    """A class and volumes with a secret in every place from which drivers read one."""
    shared = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"]}
    csi = {"driver": "smb.csi.k8s.io", "volumeHandle": "v", "volumeAttributes": {"key": SECRET}}
    flex = {"driver": "example/cifs", "options": {"password": SECRET}}
    return [
        object_json(
            "StorageClass",
            api="storage.k8s.io/v1",
            provisioner="smb.csi.k8s.io",
            parameters={"adminSecret": SECRET},
            mountOptions=[f"password={SECRET}"],
        ),
        object_json(
            "PersistentVolume", spec={**shared, "mountOptions": [f"password={SECRET}"], "csi": csi}
        ),
        object_json("PersistentVolume", "b", spec={**shared, "flexVolume": flex}),
        pod_json("c", volumes=[{"name": "v", "flexVolume": flex}]),
    ]


def test_secrets_of_storage_are_left_out() -> None:
    """Drivers for network shares take a password as a parameter or a mount option."""
    body = encode_cluster_snapshot(telling_storage())
    assert SECRET not in body.decode()
    assert "smb.csi.k8s.io" in body.decode()
    assert decode_body(body) == decode(*telling_storage())


def strip_free(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod as a template, secrets and all."""
    return {"metadata": pod["metadata"], "spec": pod["spec"]}


def test_stripped_objects_decode_to_the_same_state() -> None:
    """A snapshot that plans differently from the live cluster reproduces nothing."""
    objects = [telling_pod(), node_json(), pod_json("b", nodeName="ip-10-0-0-7")]
    assert decode_body(encode_cluster_snapshot(objects)) == decode(*objects)


def test_malformed_objects_survive_stripping() -> None:
    """A bug report about an unreadable object needs that object."""
    broken: list[dict[str, Any]] = [
        {"kind": "Pod", "metadata": 5, "spec": []},
        {"kind": "Pod", "metadata": {"annotations": []}, "spec": {"containers": ["x"]}},
    ]
    for each in broken:
        assert strip_object(each) == each


def test_cloud_files_read_back_to_the_same_state_without_user_data() -> None:
    """User data carries bootstrap tokens."""
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    versions = [
        {
            "LaunchTemplateId": "lt-1",
            "VersionNumber": 1,
            "LaunchTemplateData": {"UserData": SECRET, "InstanceType": "r5.xlarge"},
        }
    ]
    event = {"EventType": "error", "Timestamp": at, "EventInformation": {"EventSubType": "x"}}
    answers: list[dict[str, Any]] = [
        {"Fleets": [fleet_json(CreateTime=at)]},
        {"LaunchTemplateVersions": versions, "ResponseMetadata": {"RequestId": "r"}},
        reservations(instance_json(LaunchTime=at)),
        {"FleetId": "fleet-1", "HistoryRecords": [event]},
    ]
    files = cloud_snapshot_files(REGION, answers)
    assert sorted(files) == ["aws-us-west-2-fleet-1-history.json", "aws-us-west-2.json"]
    assert all(SECRET not in body.decode() for body in files.values())
    read = [
        answer
        for name, body in files.items()
        for answer in split_answers(body, name, Region("elsewhere"))
    ]
    seen = [(REGION, answer) for answer in answers]
    live = decode_cloud(seen, cluster="analytics", asked=True)
    assert decode_cloud(read, cluster="analytics") == live
    assert live.fleets[0].launch_errors
    assert json.loads(files["aws-us-west-2.json"])["Region"] == REGION


def test_snapshot_without_an_instance_says_that_ec2_was_asked() -> None:
    """The plan from it would end nothing for another reason than the live one, or end something."""
    answers: list[dict[str, Any]] = [
        {"Fleets": [fleet_json(FulfilledCapacity=0)]},
        {"Reservations": []},
    ]
    read = [
        answer
        for name, body in cloud_snapshot_files(REGION, answers).items()
        for answer in split_answers(body, name, REGION)
    ]
    seen = [(REGION, answer) for answer in answers]
    assert decode_cloud(read, cluster="analytics") == decode_cloud(
        seen, cluster="analytics", asked=True
    )
    plain = decode_cloud([*read, (Region("eu-west-1"), answers[1])], cluster="analytics")
    assert not plain.instances_asked

"""Texts of a tenant that the API server admits at any length are kept at a limited one."""

import gc
import json
import tracemalloc

import pytest

from reconciler.records.kubernetes import limits
from reconciler.records.kubernetes.objects import ObjectDecoder
from tests.unit.records.kubernetes.kube import Json, decode, decode_pod, object_json, pod_json

KEPT_BYTES_MAX = 64 * 1024
LONG = 200_000


def long(letter: str) -> str:
    """A text that nobody needs."""
    return letter * LONG


def claim(spec: Json, **metadata: Json) -> Json:
    """A claim of a tenant."""
    made: Json = object_json(
        "PersistentVolumeClaim", metadata={"namespace": "web", **metadata}, spec=spec
    )
    return made


SHAPES: dict[str, Json] = {
    "owner": pod_json(
        metadata={
            "ownerReferences": [
                {"kind": long("k"), "name": long("n"), "uid": long("u"), "controller": True}
            ]
        }
    ),
    "EBS volumes": pod_json(
        volumes=[
            {"name": f"v{i}", "awsElasticBlockStore": {"volumeID": f"vol-{i}" + "v" * 9_000}}
            for i in range(128)
        ]
    ),
    "scheduler": pod_json(schedulerName=long("s")),
    "nominated node": pod_json(status={"phase": "Pending", "nominatedNodeName": long("n")}),
    "access modes": claim({"accessModes": ["ReadWriteOnce"] * 80_000}),
    "unknown access modes": claim({"accessModes": [f"{i}{'m' * 100}" for i in range(5_000)]}),
    "selected node": claim({}, annotations={"volume.kubernetes.io/selected-node": long("n")}),
    "annotated class": claim(
        {}, annotations={"volume.beta.kubernetes.io/storage-class": long("c")}
    ),
    "class and volume": claim({"storageClassName": long("c"), "volumeName": long("v")}),
}


@pytest.mark.parametrize("what", SHAPES)
def test_long_text_is_not_kept(what: str) -> None:
    """A thousand such objects, of 1.2 MB each, would end the process."""
    made = SHAPES[what]
    raw = json.dumps(made).encode()
    ObjectDecoder().decode("Pod", json.dumps(pod_json()).encode())  # imports and tables
    decoder = ObjectDecoder()
    tracemalloc.start()
    found = decoder.decode(made["kind"], raw)
    assert found is not None
    assert found.ignored is None
    # A spec's JSON is the key of a table, where it counts by its length.
    decoder = ObjectDecoder()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < KEPT_BYTES_MAX


def test_texts_of_the_usual_length_are_whole() -> None:
    """A name that was cut would be another object's, or nobody's."""
    name = "n" * limits.NAME_MAX
    owner = {"kind": "ReplicaSet", "name": name, "uid": "u" * 36, "controller": True}
    volume = {"name": "v", "awsElasticBlockStore": {"volumeID": "aws://us-west-2a/vol-0123456789"}}
    pod = decode_pod(metadata={"ownerReferences": [owner]}, volumes=[volume], schedulerName=name)
    assert pod.owner is not None
    assert (pod.owner.kind, pod.owner.name, pod.owner.uid) == ("ReplicaSet", name, "u" * 36)
    assert pod.ebs_volume_ids == ("vol-0123456789",)
    assert pod.spec.scheduler_name == name
    modes = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]
    annotations = {"volume.kubernetes.io/selected-node": name}
    made = claim(
        {"accessModes": modes, "storageClassName": name, "volumeName": name},
        annotations=annotations,
    )
    (found,) = decode(made).claims
    assert found.access_modes == tuple(dict.fromkeys(modes))
    assert (found.storage_class, found.volume_name, found.selected_node) == (name, name, name)

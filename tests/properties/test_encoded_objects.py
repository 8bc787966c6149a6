"""What the model holds is what its Kubernetes JSON decodes to."""

import json

from hypothesis import given

from reconciler.records.kubernetes import decode_cluster, split_documents
from reconciler.records.kubernetes.encoding import encode_node, encode_pod
from reconciler.records.kubernetes.storage_encoding import (
    encode_claim,
    encode_csi_node,
    encode_storage_class,
    encode_volume,
)
from tests.properties.case import Case
from tests.properties.strategies import cases


@given(cases())
def test_pods_nodes_and_volumes_decode_to_what_was_encoded(case: Case) -> None:
    """A snapshot of a simulation that opens as another cluster would explain another plan."""
    cluster = case.snapshot.cluster
    items = [
        *map(encode_pod, cluster.pods),
        *map(encode_node, cluster.nodes),
        *map(encode_claim, cluster.claims),
        *map(encode_volume, cluster.volumes),
        *map(encode_storage_class, cluster.storage_classes),
        *map(encode_csi_node, cluster.csi_nodes),
    ]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    found = decode_cluster(split_documents(body, "cluster.json"))
    assert {p.key: p.spec for p in found.pods} == {p.key: p.spec for p in cluster.pods}
    assert {
        (p.key, p.labels, p.owner, p.phase, p.node_name, p.gated, p.mirror) for p in found.pods
    } == {(p.key, p.labels, p.owner, p.phase, p.node_name, p.gated, p.mirror) for p in cluster.pods}
    assert set(found.nodes) == set(cluster.nodes)
    assert set(found.claims) == set(cluster.claims)
    assert set(found.volumes) == set(cluster.volumes)
    assert set(found.storage_classes) == set(cluster.storage_classes)
    assert set(found.csi_nodes) == set(cluster.csi_nodes)

"""What a tenant may write, as the API server takes it, is recorded in lines that can be read."""

import io
from datetime import timedelta
from typing import Any

import pytest

from reconciler.records.demand import ObservedDemand, changes, encode_line, read_demand, seen_in
from tests.builders import NOW
from tests.unit.records.kubernetes.kube import Json, container, decode, object_json, pod_json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LINE = {"key": "k", "operator": "In", "values": ["x" * 1_300_000]}
TERM = {"topologyKey": "topology.kubernetes.io/zone", "namespaceSelector": {}}
TERMS = [{**TERM, "labelSelector": {"matchLabels": {f"k{i}": "v" * 63}}} for i in range(5000)]
WORST: dict[str, Json] = {
    "labels": {"metadata": {"labels": {f"k{i:05}": "v" * 63 for i in range(14_000)}}},
    "node affinity": {
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [LINE]}]}}
        }
    },
    "anti-affinity": {"affinity": {"podAntiAffinity": {REQUIRED: TERMS}}},
    "affinity": {"affinity": {"podAffinity": {REQUIRED: TERMS}}},
    "node selector": {"nodeSelector": {f"k{i}": "v" * 63 for i in range(14_000)}},
    "resources": {"containers": [container(**{f"example.com/{i:050}": "1" for i in range(9999)})]},
    "tolerations": {"tolerations": [{"key": f"{i:0300}"} for i in range(4000)]},
}


@pytest.mark.parametrize("what", WORST)
def test_day_with_the_worst_pod_can_be_read(what: str) -> None:
    """One pod with 14,000 labels made a whole day of all others unreadable."""
    spec: dict[str, Any] = {"nodeName": "n", "status": {"phase": "Running"}, **WORST[what]}
    template = {"template": {"spec": {"containers": [], **WORST[what]}}}
    daemon_set = object_json(
        "DaemonSet", api="apps/v1", metadata={"namespace": "web"}, spec=template
    )
    now = seen_in(decode(pod_json(**spec), daemon_set), None, NOW, {}, ObservedDemand())
    lines = list(changes(ObservedDemand(), now, NOW, timedelta(days=1)))
    written = b"".join(map(encode_line, lines))
    assert len(lines) == 3
    assert len(read_demand(io.BytesIO(written), "recorded").lines) == 2

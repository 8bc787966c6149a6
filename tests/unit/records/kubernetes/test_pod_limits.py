"""What one pod asks for is bounded when it is read, and what is left out counts as more."""

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.records.kubernetes import limits
from reconciler.records.kubernetes.pods import PodDecoder
from tests.unit.records.kubernetes.kube import (
    Json,
    container,
    decode,
    decode_pod,
    object_json,
    pod_json,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MIB = 2**20


def pod_terms(count: int, **more: Any) -> list[Json]:
    """Terms about other pods."""
    selector = {"matchLabels": {"app": "x"}}
    return [{"topologyKey": f"k{i}", "labelSelector": selector, **more} for i in range(count)]


def node_terms(count: int, lines: int = 1, values: int = 1) -> list[Json]:
    """Node selector terms."""
    line = {"key": "zone", "operator": "In", "values": ["a"] * values}
    return [{"matchExpressions": [line] * lines} for _ in range(count)]


def node_affinity(terms: list[Json]) -> Json:
    """Required node affinity."""
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def anti_affinity(terms: list[Json]) -> Json:
    """Required anti-affinity."""
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}


def asking(resources: int) -> Json:
    """A container that names so many extended resources."""
    extra = {f"example.com/r{i}": "1" for i in range(resources)}
    return {"containers": [container(cpu="2", memory="1Gi", **extra)]}


def with_ports(count: int) -> Json:
    """A container with so many host ports."""
    ports = [{"containerPort": 80, "hostPort": 1000 + i} for i in range(count)]
    return {"containers": [{**container(cpu="2"), "ports": ports}]}


def spreads(count: int) -> Json:
    """Hard spread constraints."""
    more = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": pod_terms(count, **more)}


SHAPES: dict[str, tuple[int, Callable[[int], Json]]] = {
    "containers": (limits.CONTAINERS_MAX, lambda n: {"containers": [container(cpu="1m")] * n}),
    "topologySpreadConstraints": (limits.SPREAD_MAX, spreads),
    "extended resources": (limits.RESOURCES_MAX, asking),
    "host ports": (limits.HOST_PORTS_MAX, with_ports),
    "tolerations": (
        limits.TOLERATIONS_MAX,
        lambda n: {"tolerations": [{"key": f"t{i}", "operator": "Exists"} for i in range(n)]},
    ),
    "node selector entries": (
        limits.LINES_MAX,
        lambda n: {"nodeSelector": {f"k{i}": "x" for i in range(n)}},
    ),
    "required node affinity terms": (
        limits.NODE_TERMS_MAX,
        lambda n: node_affinity(node_terms(n)),
    ),
    "lines in its required node affinity terms": (
        limits.LINES_MAX,
        lambda n: node_affinity(node_terms(1, lines=n)),
    ),
    "values in its required node affinity terms": (
        limits.VALUES_MAX,
        lambda n: node_affinity(node_terms(1, values=n)),
    ),
    "preferred node affinity terms": (
        limits.NODE_TERMS_MAX,
        lambda n: {
            "affinity": {
                "nodeAffinity": {
                    PREFERRED: [
                        {"weight": 1, "preference": node_term} for node_term in node_terms(n)
                    ]
                }
            }
        },
    ),
    "required pod affinity terms": (
        limits.POD_TERMS_MAX,
        lambda n: {"affinity": {"podAffinity": {REQUIRED: pod_terms(n)}}},
    ),
    "required pod anti-affinity terms": (
        limits.POD_TERMS_MAX,
        lambda n: anti_affinity(pod_terms(n)),
    ),
    "values in its required pod anti-affinity terms": (
        limits.VALUES_MAX,
        lambda n: anti_affinity(pod_terms(1, namespaces=[f"n{i}" for i in range(n)])),
    ),
    "preferred pod affinity and anti-affinity terms": (
        limits.POD_TERMS_MAX,
        lambda n: {
            "affinity": {
                "podAffinity": {
                    PREFERRED: [
                        {"weight": 1, "podAffinityTerm": pod_term} for pod_term in pod_terms(n)
                    ]
                }
            }
        },
    ),
    "volumes": (
        limits.VOLUMES_MAX,
        lambda n: {
            "volumes": [
                {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(n)
            ]
        },
    ),
    "characters in the name of a claim": (
        limits.NAME_MAX,
        lambda n: {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c" * n}}]},
    ),
}


@pytest.mark.parametrize("what", SHAPES)
def test_pod_at_the_limit_is_planned_and_one_beyond_it_is_not(what: str) -> None:
    """An off-by-one here is a pod that waits for no reason, or a limit that limits nothing."""
    most, make = SHAPES[what]
    assert decode_pod(**make(most)).spec.too_complex == ""
    found = decode_pod(**make(most + 1)).spec.too_complex
    assert found == f"has {most + 1:,} {what}, at most {most:,} are planned for"


@pytest.mark.parametrize("what", SHAPES)
def test_pod_far_beyond_a_limit_is_kept_in_little_memory(what: str) -> None:
    """The API server admits 1 MiB a pod: a thousand such pods would end the process."""
    most, make = SHAPES[what]
    raw = pod_json(**make(most * 10))
    state = decode(pod_json())  # imports and tables
    tracemalloc.start()
    state = decode(raw)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert state.pods[0].spec.too_complex
    assert held < MIB


def test_claim_that_can_never_exist_is_not_kept() -> None:
    """Its name, of any length, would be reported once per fleet; and nothing is attached for it."""
    claims = ["c" * 900_000, "data"]
    volumes = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
        for i, name in enumerate(claims)
    ]
    assert decode_pod(volumes=volumes).claims == ("data",)


def running(**spec: Any) -> Pod:
    """A pod that runs on a node."""
    return decode_pod(nodeName="n1", status={"phase": "Running"}, **spec)


def test_basic_resources_count_beside_too_many_others() -> None:
    """Its node would look empty, and be ended under it."""
    pod = running(**asking(20_000))
    assert dict(pod.spec.requests) == {"cpu": 2000, "memory": 2**30, "pods": 1}
    assert pod.spec.takes_all
    assert running(**with_ports(5000)).spec.takes_all
    assert not running(**asking(3)).spec.takes_all


def test_too_much_anti_affinity_closes_the_node_for_every_pod_it_may_mean() -> None:
    """Pods would be promised to nodes from which kube-scheduler keeps them off."""
    (host, *rest) = running(**anti_affinity(pod_terms(100))).spec.pod_anti_affinity
    assert host.topology_key == "kubernetes.io/hostname"
    assert host.selector is not None
    assert host.selector.matches({})
    assert host.namespace_selector is None
    abroad = running(**anti_affinity(pod_terms(100, namespaceSelector={})))
    assert abroad.spec.pod_anti_affinity[0].namespace_selector is not None
    assert [term.topology_key for term in rest] == [f"k{i}" for i in range(31)]


def test_too_much_anti_affinity_closes_no_zone() -> None:
    """One running pod whose terms mean nobody would close its zone for all."""
    terms = pod_terms(100, namespaceSelector={})
    for term in terms:
        term["topologyKey"] = "topology.kubernetes.io/zone"
    (_, *rest) = running(**anti_affinity(terms)).spec.pod_anti_affinity
    assert all(t.selector is not None and not t.selector.matches({}) for t in rest)
    many = pod_terms(1, namespaces=[f"n{i}" for i in range(limits.VALUES_MAX + 1)])
    assert len(running(**anti_affinity(many)).spec.pod_anti_affinity) == 1


def test_daemon_set_with_too_much_anti_affinity_closes_no_new_node() -> None:
    """Its pods come with every new node: none would take any pod."""
    made = object_json(
        "DaemonSet",
        api="apps/v1",
        metadata={"namespace": "web"},
        spec={"template": {"spec": anti_affinity(pod_terms(100, namespaceSelector={}))}},
    )
    (daemon_set,) = decode(made).daemon_sets
    kept = daemon_set.spec.pod_anti_affinity
    assert [term.topology_key for term in kept] == [f"k{i}" for i in range(31)]


def test_budget_with_a_boundless_selector_counts_as_unreadable() -> None:
    """It would be compared with every pod of its namespace, line by line."""
    lines = [{"key": f"k{i}", "operator": "Exists"} for i in range(limits.LINES_MAX + 1)]
    made = object_json(
        "PodDisruptionBudget",
        api="policy/v1",
        metadata={"namespace": "web"},
        spec={"selector": {"matchExpressions": lines}},
    )
    (budget,) = decode(made).budgets
    assert budget.unreadable
    assert budget.disruptions_allowed == 0


def test_claim_with_a_boundless_selector_is_kept_without_it() -> None:
    """It would be compared with every volume that was made by hand, line by line."""
    lines = [{"key": f"k{i}", "operator": "Exists"} for i in range(limits.LINES_MAX + 1)]
    for count in (limits.LINES_MAX, limits.LINES_MAX + 1):
        made = object_json(
            "PersistentVolumeClaim",
            metadata={"namespace": "web"},
            spec={"selector": {"matchExpressions": lines[:count]}},
        )
        (claim,) = decode(made).claims
        assert (claim.selector is None) == (count > limits.LINES_MAX)
        expected = "has 257 lines in its selector, at most 256 are planned for"
        assert claim.too_complex == (expected if count > limits.LINES_MAX else "")


def test_too_many_labels_are_cut_and_their_pod_is_not_planned() -> None:
    """250 pods with 14,000 labels each were more memory than the program may take."""
    for count in (limits.LABELS_MAX, limits.LABELS_MAX + 1):
        labels = {f"k{i:05}": "v" for i in reversed(range(count))}
        pod = decode_pod(metadata={"labels": labels})
        assert sorted(pod.labels) == sorted(labels)[: limits.LABELS_MAX]
        expected = "has 129 labels, at most 128 are planned for"
        assert pod.spec.too_complex == (expected if count > limits.LABELS_MAX else "")
    assert decode_pod().spec.too_complex == ""


def test_labels_of_a_template_are_cut() -> None:
    """A thousand DaemonSets may have as many."""
    labels = {f"k{i:05}": "v" for i in range(2 * limits.LABELS_MAX)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    made = object_json(
        "DaemonSet", api="apps/v1", metadata={"namespace": "web"}, spec={"template": template}
    )
    (daemon_set,) = decode(made).daemon_sets
    assert list(daemon_set.labels) == list(labels)[: limits.LABELS_MAX]


def test_rules_of_a_megabyte_are_left_out() -> None:
    """Values may be of any length: 850 pods would hold them for as long as they live."""
    long = [{"key": "sector", "operator": "In", "values": ["x" * limits.SPEC_BYTES_MAX]}]
    pod = running(
        containers=[container(cpu="2")],
        affinity={
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": long}]}},
            "podAntiAffinity": {REQUIRED: pod_terms(1)},
        },
    )
    assert pod.spec.node_affinity is None
    assert pod.spec.requests["cpu"] == 2000
    assert [t.topology_key for t in pod.spec.pod_anti_affinity] == ["kubernetes.io/hostname"]
    assert pod.spec.too_complex.endswith(
        "bytes of requests and rules, at most 131,072 are planned for"
    )


def test_annotations_are_kept_as_far_as_they_are_looked_at() -> None:
    """A bomb of 256 KiB in each of thousands of pods would be held for as long as they live."""
    bomb = {"karpenter.sh/do-not-disrupt": "x" * 250_000}
    pod = decode_pod(metadata={"annotations": bomb})
    assert len(pod.annotations["karpenter.sh/do-not-disrupt"]) < 100
    kept = decode_pod(metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
    assert kept.annotations["karpenter.sh/do-not-disrupt"] == "true"


def test_tables_of_specs_and_labels_do_not_grow_with_large_ones() -> None:
    """Pods that come and go, each with a spec of its own near 1 MiB, would fill memory."""
    decoder = PodDecoder()
    large = "x" * 50_000

    def held_after(first: int, last: int) -> int:
        for number in range(first, last):
            raw = pod_json(
                nodeSelector={"k": f"{large}{number}"},
                metadata={"labels": {"a": f"{number}{large}"}},
            )
            decoder.pod(json.dumps(raw).encode())
        return len(decoder._specs_by_json)

    assert held_after(0, 10) == 10
    tables_max = 2 * 8_192 // (50_000 // 4_096)
    assert held_after(10, tables_max + 200) <= tables_max + 2


def test_pod_with_resource_claims_is_not_planned() -> None:
    """A node would be bought for its CPU, and the devices that it asks for are not there."""
    claim = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    pod = decode_pod(resourceClaims=[claim])
    assert pod.spec.too_complex == "asks for devices by resourceClaims, which are not planned for"
    assert decode_pod(resourceClaims=[]).spec.too_complex == ""

"""Objects as API servers of Kubernetes 1.30 to 1.36 write them: what came, release by release.

Source: the release notes and API reference of Kubernetes, read 2026-11.
"""

from typing import Any

import pytest

from reconciler.model.cluster import Pod
from tests.unit.records.kubernetes.kube import container, decode, node_json, object_json, pod_json

CPU = 1000
SIDECAR = [{**container(cpu="500m"), "name": "proxy", "restartPolicy": "Always"}]
RESIZED = {
    "containerStatuses": [
        {
            "name": "c",
            "image": "i",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "started": True,
            "allocatedResources": {"cpu": "1"},
            "resources": {"requests": {"cpu": "1"}},
            "state": {"running": {"startedAt": "2026-01-31T11:00:00Z"}},
        }
    ]
}
AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["pod-template-hash"],
            }
        ]
    }
}
CASES: list[tuple[str, dict[str, Any], int]] = [
    ("1.30 scheduling gates", {"schedulingGates": [{"name": "example.com/quota"}]}, CPU),
    ("1.30 sidecar containers", {"initContainers": SIDECAR}, 1500),
    ("1.30 AppArmor", {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}, CPU),
    ("1.31 matchLabelKeys of affinity", {"affinity": AFFINITY}, CPU),
    ("1.31 image volumes", {"volumes": [{"name": "v", "image": {"reference": "r/i:1"}}]}, CPU),
    ("1.33 user namespaces", {"hostUsers": False}, CPU),
    ("1.33 resize under way", {"status": {**RESIZED, "phase": "Running"}}, CPU),
    (
        "1.34 dynamic resource allocation",
        {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
            ],
        },
        CPU,
    ),
    ("1.34 resources of the pod", {"resources": {"requests": {"cpu": "3"}}}, 3000),
    (
        "1.34 restart rules of a container",
        {
            "containers": [
                {
                    **container(cpu="1"),
                    "restartPolicy": "Never",
                    "restartPolicyRules": [{"action": "Restart"}],
                }
            ]
        },
        CPU,
    ),
    ("1.35 hostname override", {"hostnameOverride": "a.example"}, CPU),
    ("1.35 workload reference", {"workloadRef": {"name": "w", "podGroup": "g"}}, CPU),
    ("1.36 a key that nobody knows yet", {"somethingNew": {"deep": [1, {"x": None}]}}, CPU),
]


def decoded(more: dict[str, Any]) -> Pod:
    """The pod of one case."""
    (pod,) = decode(pod_json(**more)).pods
    return pod


@pytest.mark.parametrize(("what", "more", "cpu_milli"), CASES, ids=[case[0] for case in CASES])
def test_pod_of_each_release_is_read_with_its_requests(
    what: str, more: dict[str, Any], cpu_milli: int
) -> None:
    """A pod that cannot be read gets no node, and keeps the one that it runs on for good."""
    pod = decoded(more)
    assert not pod.unreadable, what
    assert pod.spec.requests["cpu"] == cpu_milli


def test_gated_pod_asks_for_nothing_yet() -> None:
    """Nodes would come for pods that no scheduler may place."""
    assert decoded({"schedulingGates": [{"name": "example.com/quota"}]}).gated


def test_match_label_keys_are_kept() -> None:
    """Pods of the version before would count against the new one."""
    (term,) = decoded({"affinity": AFFINITY}).spec.pod_anti_affinity
    assert term.match_label_keys == ("pod-template-hash",)


def test_spread_rules_of_all_releases_are_read() -> None:
    """A policy that is passed over spreads over nodes that the scheduler leaves out."""
    rule = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
        "matchLabelKeys": ["pod-template-hash"],
    }
    (found,) = decoded({"topologySpreadConstraints": [rule]}).spec.topology_spread
    assert (found.min_domains, found.honor_node_affinity, found.honor_node_taints) == (
        3,
        False,
        True,
    )


def test_nodes_and_budgets_of_all_releases_are_read() -> None:
    """A node that cannot be read is never removed, a budget that cannot stops all evictions."""
    node = node_json(
        status={
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "58"},
            "runtimeHandlers": [{"name": "runc", "features": {"userNamespaces": True}}],
            "features": {"supplementalGroupsPolicy": True},
            "declaredFeatures": ["InPlacePodVerticalScaling"],
        },
    )
    budget = object_json(
        "PodDisruptionBudget",
        "web",
        api="policy/v1",
        metadata={"namespace": "web"},
        spec={
            "minAvailable": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        status={"desiredHealthy": 1, "currentHealthy": 2, "expectedPods": 2},
    )
    state = decode(node, budget)
    assert not state.nodes[0].unreadable
    assert not state.budgets[0].unreadable

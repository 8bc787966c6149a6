"""Three thousand spoiled objects through `reconciler plan`: an answer, never a traceback.

Seeded, so that a failure comes back; each round spoils fifteen copies of valid objects and keeps
two witnesses whole.
"""

import copy
import json
from collections.abc import Iterator
from random import Random  # noqa: TID251 - seeded here
from typing import Any

import pytest

from tests.cli.inputs import Desk, Json, fleet, fleets, instances, listing, node, pod
from tests.cli.volumes import EBS, attaching, claim, storage_class, volume

Path = tuple[str | int, ...]
ROUNDS, SPOILED = 210, 15
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SELECTOR: Json = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}],
}
TERM: Json = {
    "matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["tape"]}],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}],
}
POD_TERM: Json = {
    "topologyKey": "topology.kubernetes.io/zone",
    "labelSelector": SELECTOR,
    "namespaces": ["ns"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["app"],
}
WEIGHTED: Json = {"weight": 1, "podAffinityTerm": POD_TERM}
FULL: Json = {
    "nodeSelector": {"sector": "primary"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [TERM]},
            PREFERRED: [{"weight": 1, "preference": TERM}],
        },
        "podAffinity": {PREFERRED: [WEIGHTED]},
        "podAntiAffinity": {
            REQUIRED: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": SELECTOR}],
            PREFERRED: [WEIGHTED],
        },
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "minDomains": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["app"],
        }
    ],
    "volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "e", "emptyDir": {"medium": "Memory"}},
        {"name": "g", "ephemeral": {"volumeClaimTemplate": {}}},
    ],
    "initContainers": [
        {
            "name": "sidecar",
            "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "1Mi"}},
            "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}],
        }
    ],
    "resources": {"requests": {"cpu": "1"}},
    "overhead": {"cpu": "1m"},
    "priority": 5,
    "preemptionPolicy": "Never",
    "schedulingGates": [],
    "terminationGracePeriodSeconds": 3,
}
STATUS: Json = {
    "phase": "Running",
    "startTime": "2026-01-31T10:00:00Z",
    "nominatedNodeName": "n1",
    "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T10:00:00Z"}
    ],
    "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-01-31T10:00:00Z"}}}],
}
WITNESSES = (node("witness-node"), pod("witness", cpu="100m"))
OBJECTS: tuple[Json, ...] = (
    pod("waits", spec=FULL, labels={"app": "web"}),
    {**pod("runs", node="n1", spec=FULL, labels={"app": "web"}), "status": STATUS},
    *attaching(25),
    {**node("n2"), "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
    claim(
        volumeName="pv",
        storageClassName="gp3",
        selector=SELECTOR,
        volumeMode="Filesystem",
    ),
    volume("us-west-2a"),
    {
        **storage_class(),
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": f"topology.{EBS}/zone", "values": ["us-west-2a"]}]}
        ],
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0},
    },
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": "a"}}},
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {}}]}}},
    },
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "fleet-reconciler",
            "namespace": "kube-system",
            "annotations": {
                "fleet-reconciler.io/last-drain": "2026-01-31T11:00:00Z",
                "fleet-reconciler.io/fleet-state": '{"fleets": []}',
            },
        },
    },
)
AWS = {
    **fleets(fleet("primary-std", 2), fleet("primary-big"), fleet("batch-std")),
    **instances(("n1", "primary-std"), ("witness-node", "primary-std")),
}
JUNK: tuple[Any, ...] = (
    None,
    [],
    {},
    "",
    -1,
    0,
    True,
    1.5,
    2**70,
    "1e400",
    "NaN",
    "-1",
    "9" * 30,
    "x" * 5_000,
    "\ud800",
    [None],
    {"a": None},
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


def spoiled(found: Json, dice: Random) -> Json:
    """The value with junk in one place."""
    result = copy.deepcopy(found)
    path = dice.choice(list(places(found)))
    parent: Any = result
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = dice.choice(JUNK)
    return result


def renamed(found: Json, number: int) -> Json:
    """A copy under another name, so that it does not replace the first."""
    copied = copy.deepcopy(found)
    if copied["kind"] != "Lease":
        copied["metadata"]["name"] += f"-{number}"
    return copied


@pytest.mark.parametrize("seed", range(3))
def test_spoiled_objects_are_listed_and_the_rest_is_planned(desk: Desk, seed: int) -> None:
    """One odd object of thousands would stop the scaling of the whole cluster."""
    dice = Random(seed)
    for number in range(ROUNDS // 3):
        chosen = [renamed(dice.choice(OBJECTS), i) for i in range(SPOILED)]
        broken = [spoiled(each, dice) for each in chosen]
        whole = [*WITNESSES, *(o for o in OBJECTS if dice.random() < 0.5)]
        aws = spoiled(AWS, dice) if number % 4 == 0 else AWS
        asked = desk.plan(
            "--cluster",
            desk.write("cluster.json", listing(*broken, *whole)),
            "--aws",
            desk.write("aws.json", json.dumps(aws)),
        )
        assert (asked.code, asked.err) == (0, ""), (seed, number)
        told = {p["pod"] for p in asked.plan["placements"] + asked.plan["unplaceable"]}
        assert "witness" in told, (seed, number)

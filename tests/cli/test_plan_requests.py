"""What a pod asks for, from its JSON to the number in the plan (docs/scale-up.md)."""

from typing import Any

import pytest

from tests.cli.inputs import Desk, Json, pod


def container(
    cpu: str | None = None, *, limit: str | None = None, restart: str | None = None
) -> Json:
    """A container that requests so much CPU, with a limit."""
    amounts = {
        **({"requests": {"cpu": cpu}} if cpu else {}),
        **({"limits": {"cpu": limit}} if limit else {}),
    }
    return {"name": "c", "resources": amounts, **({"restartPolicy": restart} if restart else {})}


CASES: dict[str, tuple[Json, str]] = {
    "containers add up": (
        {"containers": [container("60"), container("50")]},
        "110",
    ),
    "init containers take turns": (
        {
            "containers": [container("1")],
            "initContainers": [container("100"), container("120")],
        },
        "120",
    ),
    "small init containers do not count": (
        {"containers": [container("100")], "initContainers": [container("5")]},
        "100",
    ),
    "a sidecar runs on": (
        {
            "containers": [container("100")],
            "initContainers": [container("10", restart="Always")],
        },
        "110",
    ),
    "a sidecar adds to init containers after it": (
        {
            "containers": [container("1")],
            "initContainers": [
                container("110"),
                container("10", restart="Always"),
                container("105"),
            ],
        },
        "115",
    ),
    "overhead is added": (
        {"containers": [container("100")], "overhead": {"cpu": "250m"}},
        "100250m",
    ),
    "a limit stands in for a missing request": (
        {"containers": [container(limit="101")]},
        "101",
    ),
    "a request wins over its limit": (
        {"containers": [container("102", limit="200")]},
        "102",
    ),
    "resources of the pod win": (
        {"containers": [container("1")], "resources": {"requests": {"cpu": "103"}}},
        "103",
    ),
    "milli and exponents are quantities": ({"containers": [container("104e0")]}, "104"),
    "the smallest fraction rounds up": (
        {"containers": [container("100000000001n")]},
        "100001m",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_effective_request_is_the_one_that_the_scheduler_counts(desk: Desk, case: str) -> None:
    """Nodes would be sized for another pod than the one that waits."""
    spec, expected = CASES[case]
    made = desk.plan_of(pod("a", spec=spec))
    details = {r["fleet"]: r["detail"] for r in made["unplaceable"][0]["reasons"]}
    assert details["primary-std"] == f"requests {expected}, a new node offers 3"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (
            {
                "metadata": {
                    "ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]
                }
            },
            "daemonset",
        ),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "mirror"),
        ({"metadata": {"deletionTimestamp": "2026-01-31T11:59:00Z"}}, "deleting"),
        ({"spec": {"schedulingGates": [{"name": "g"}]}}, "gated"),
        ({"spec": {"schedulerName": "volcano"}}, "other-scheduler"),
        ({"status": {"phase": "Succeeded"}}, "finished"),
        ({"metadata": {"namespace": "kube-system"}}, "kube-system"),
    ],
)
def test_ignored_pods_are_known_by_their_json(
    desk: Desk, changed: dict[str, dict[str, Any]], code: str
) -> None:
    """A static pod or a DaemonSet's would buy a node."""
    made = pod("a")
    for part, values in changed.items():
        made[part] = {**made[part], **values}
    listed = desk.plan_of(made)
    assert [i["code"] for i in listed["ignored"]] == [code]
    assert listed["actions"] == []


def test_pod_namespace_limits_demand(desk: Desk) -> None:
    """The flag that users of kubernetes-ec2-autoscaler know would do nothing."""
    objects = [pod("a", namespace="mine"), pod("b", namespace="theirs")]
    file = desk.write("c.json", {"kind": "List", "items": objects})
    made = desk.plan("--cluster", file, "--pod-namespace", "mine").plan
    assert [p["pod"] for p in made["placements"]] == ["a"]

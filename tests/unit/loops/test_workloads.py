"""Pending pods by workload: names that people know, the worst first, reasons joined."""

from datetime import timedelta

import pytest

from reconciler.loops.workloads import Workload, pending_by_workload, workload_of
from reconciler.model.cluster import Owner, Pod
from reconciler.model.ids import NodeName
from reconciler.model.plan import Cost, Placement, Plan
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.model.unplaceable import Reason, Unplaceable
from tests.builders import HOME, NOW, make_pod

FREE = Cost(hourly_usd_before=0, hourly_usd_after=0, hourly_usd_lower_bound=0, gap=0)


@pytest.mark.parametrize(
    ("owner", "labels", "kind", "name"),
    [
        (
            Owner(kind="ReplicaSet", name="api-5d4"),
            {"pod-template-hash": "5d4"},
            "Deployment",
            "api",
        ),
        (Owner(kind="ReplicaSet", name="api-5d4"), {}, "ReplicaSet", "api-5d4"),
        (Owner(kind="ReplicaSet", name="api"), {"pod-template-hash": "x"}, "ReplicaSet", "api"),
        (Owner(kind="Job", name="report-29381040"), {}, "CronJob", "report"),
        (Owner(kind="Job", name="import-2026"), {}, "Job", "import-2026"),
        (Owner(kind="StatefulSet", name="db"), {}, "StatefulSet", "db"),
        (None, {}, "Pod", "alone"),
    ],
)
def test_workload_has_the_name_that_people_gave_it(
    owner: Owner | None, labels: dict[str, str], kind: str, name: str
) -> None:
    """Nobody knows the hash of his ReplicaSet."""
    pod = make_pod("alone", namespace="web", owner=owner, labels=labels)
    assert workload_of(pod) == Workload(namespace="web", kind=kind, name=name)


def pods_of(name: str, count: int) -> list[Pod]:
    """Pods of one StatefulSet, the first the oldest."""
    owner = Owner(kind="StatefulSet", name=name)
    return [
        make_pod(f"{name}-{n}", owner=owner, created_at=NOW - timedelta(seconds=100 - n))
        for n in range(count)
    ]


def test_workloads_that_no_fleet_can_run_come_first_with_reasons_joined_over_fleets() -> None:
    """Ten thousand pods times six fleets are one line."""
    many, stuck = pods_of("many", 5), pods_of("stuck", 2)
    reasons = tuple(
        Reason(fleet=f"web-{size}", region=HOME, code="taint", detail="gpu=true:NoSchedule")
        for size in ("large", "small")
    )
    plan = Plan(
        at=NOW,
        cluster="analytics",
        home_region=HOME,
        cost=FREE,
        unplaceable=tuple(Unplaceable(pod=pod.key, reasons=reasons) for pod in stuck),
        placements=tuple(
            Placement(pod=pod.key, fleet="web-small", region=HOME, new_node=0) for pod in many
        ),
    )
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=(*many, *stuck)))
    first, second = pending_by_workload(snapshot, plan)
    assert (first.workload.name, first.pods, first.state) == ("stuck", 2, "unplaceable")
    (refusal,) = first.refusals
    assert (refusal.code, refusal.pods) == ("taint", 2)
    assert refusal.fleets == (("web-large", HOME), ("web-small", HOME))
    assert first.oldest_at == NOW - timedelta(seconds=100)
    assert (second.workload.name, second.pods, second.state) == ("many", 5, "new-node")
    assert second.fleets == {"web-small": 5}


def test_moved_pods_do_not_count_as_pending_and_pods_that_are_gone_still_do() -> None:
    """A plan is older than the page: what it says must still add up."""
    placements = (
        Placement(pod=make_pod("moved").key, fleet="f", launching=0, moved_from=NodeName("node")),
        Placement(pod=make_pod("gone").key, fleet="f", launching=0),
    )
    plan = Plan(at=NOW, cluster="c", home_region=HOME, cost=FREE, placements=placements)
    (only,) = pending_by_workload(Snapshot(at=NOW), plan)
    assert (only.workload.kind, only.workload.name) == ("Pod", "gone")
    assert (only.state, only.oldest_at) == ("launching", None)

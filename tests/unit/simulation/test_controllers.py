"""Controllers of a demand: how they change their pods, as those of Kubernetes do."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.cluster import Owner, Pod
from reconciler.model.demand import ControllerDemand, CronDemand, DemandLine, PodManagementPolicy
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = make_spec("1", "2Gi")
CALM = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)


def web(at: float = 0, kind: str = "Deployment", **changed: Any) -> ControllerDemand:
    """A change of the controller `web`."""
    owner = Owner(kind=kind, name="web")
    return ControllerDemand(at=AT + timedelta(seconds=at), controller=owner, **changed)


def pods_after(lines: Iterable[DemandLine], seconds: float = 1200) -> list[Pod]:
    """The pods in the cluster so long after the first line."""
    settings = make_settings(make_fleet_settings(price="0.10"), search_budget_seconds=0.0)
    options = Options(days=seconds / 86_400, chances=CALM)
    made = Simulation(folded(lines), settings, options)
    made.run()
    return made.world.pods()


def test_another_template_of_a_replica_set_is_that_of_later_pods_only() -> None:
    """Kubernetes replaces no pod of it; a Deployment does, with another ReplicaSet."""
    lines = [
        web(kind="ReplicaSet", replicas=2, spec=SPEC),
        web(300, kind="ReplicaSet", spec=make_spec("500m", "1Gi")),
        web(600, kind="ReplicaSet", replicas=3),
    ]
    assert [pod.spec.requests["cpu"] for pod in pods_after(lines)] == [1000, 1000, 500]


@pytest.mark.parametrize(("policy", "at_once"), [(None, 1), ("OrderedReady", 1), ("Parallel", 3)])
def test_stateful_set_creates_its_replicas_one_after_the_other(
    policy: PodManagementPolicy | None, at_once: int
) -> None:
    """All were created together, and their nodes were bought together, as Kubernetes never asks.

    A controller that is deleted meanwhile creates none of those that were missing.
    """
    made = web(kind="StatefulSet", replicas=3, spec=make_spec("3"), pod_management_policy=policy)
    assert len(pods_after([made], seconds=30)) == at_once
    assert [pod.key.name for pod in pods_after([made])] == ["web-0", "web-1", "web-2"]
    again = [made, web(30, kind="StatefulSet", deleted=True), web(40, replicas=1, spec=SPEC)]
    assert len(pods_after(again)) == 1


@pytest.mark.parametrize("changed_at", [10, 20])
def test_cron_job_that_is_changed_when_it_is_due_starts_its_job_once(changed_at: int) -> None:
    """The line of a full hour took the place of the Job of that hour; a new CronJob waits."""
    crons = [
        CronDemand(at=AT + timedelta(minutes=n), id="c", schedule="*/10 * * * *", spec=SPEC,
                   ran_seconds=9000.0)
        for n in (0, changed_at)
    ]  # fmt: skip
    jobs = [pod.created_at for pod in pods_after(crons, seconds=1500)]
    assert jobs == [AT + timedelta(minutes=10), AT + timedelta(minutes=20)]

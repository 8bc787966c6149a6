"""Pods that have ended: what keeps them, and what does not."""

import pytest

from reconciler.model.cluster import Owner
from reconciler.planner.descheduler_settings import EvictorSettings, FailedPods, PodLifeTime
from tests.builders import labelled
from tests.unit.planner.disruption.descheduler.scene import descheduling, evicted, nodes, old
from tests.unit.planner.disruption.scale_in.scene import planned


def test_bare_pod_that_succeeded_stays_when_failed_ones_may_go() -> None:
    """Upstream's `evictFailedBarePods` is about the phase Failed: nothing replaces the pod."""
    evictor = EvictorSettings(failed_bare_pods=True)
    policy = PodLifeTime(seconds_max=60, states=frozenset({"Succeeded", "Failed"}))
    done = old("a", "done", phase="Succeeded", owner=None)
    failed = old("a", "failed", phase="Failed", owner=None)
    settings = descheduling(policy, evictor=evictor)
    assert list(evicted(planned(settings, *nodes("a", "b"), done, failed))) == ["failed"]


@pytest.mark.parametrize("value", ["true", "4h"])
def test_failed_pod_that_karpenters_annotation_keeps_stays(value: str) -> None:
    """For a time or for good: somebody wants to look at it, as at a running pod."""
    kept = old("a", phase="Failed", annotations=labelled(**{"karpenter.sh/do-not-disrupt": value}))
    assert evicted(planned(descheduling(FailedPods()), *nodes("a"), kept)) == {}


def test_failed_pod_goes_when_the_time_of_karpenters_annotation_is_over() -> None:
    """It began two hours ago and asked for one."""
    notes = labelled(**{"karpenter.sh/do-not-disrupt": "1h"})
    failed = old("a", phase="Failed", annotations=notes)
    assert len(evicted(planned(descheduling(FailedPods()), *nodes("a"), failed))) == 1


@pytest.mark.parametrize(("least", "kind"), [(2, "ReplicaSet"), (1, "Job")])
def test_least_number_of_replicas_does_not_keep_pods_that_failed(least: int, kind: str) -> None:
    """They serve no requests: those of Jobs and of sets with one replica would always stay."""
    owner = Owner(kind=kind, name="x", uid="x")
    pods = [old("a", f"f{i}", phase="Failed", owner=owner) for i in range(3)]
    settings = descheduling(FailedPods(), evictor=EvictorSettings(replicas_min=least))
    assert len(evicted(planned(settings, *nodes("a"), *pods))) == 3


def test_failed_pods_do_not_count_as_replicas_of_those_that_run() -> None:
    """Counted, they would let the only replica that serves go."""
    owner = Owner(kind="ReplicaSet", name="x", uid="x")
    failed = [old("a", f"f{i}", phase="Failed", owner=owner) for i in range(3)]
    policy = PodLifeTime(seconds_max=60)
    settings = descheduling(policy, evictor=EvictorSettings(replicas_min=2))
    runs = old("a", "runs", owner=owner)
    assert evicted(planned(settings, *nodes("a", "b"), *failed, runs)) == {}

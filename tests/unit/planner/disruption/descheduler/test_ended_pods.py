"""Pods that have ended: what keeps them, and what does not."""

import pytest

from reconciler.planner.descheduler_settings import EvictorSettings, FailedPods, PodLifeTime
from tests.builders import labelled
from tests.unit.planner.disruption.descheduler.scene import descheduling, evicted, nodes, old
from tests.unit.planner.disruption.scale_in.scene import planned


def test_bare_pod_that_succeeded_stays_when_failed_ones_may_go() -> None:
    """Upstream's `evictFailedBarePods` is about the phase Failed: nobody makes the pod again."""
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

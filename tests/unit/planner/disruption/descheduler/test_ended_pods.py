"""Pods that have ended: what keeps them, and what does not."""

from reconciler.planner.descheduler_settings import EvictorSettings, PodLifeTime
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

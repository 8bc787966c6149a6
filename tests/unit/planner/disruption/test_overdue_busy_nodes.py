"""Expired nodes to which new pods come all the time are emptied once their time is over."""

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    PODS_BLOCK_SINCE,
    DeletePod,
    EvictPod,
    TerminateInstance,
)
from reconciler.model.cluster import Node, Pod, Taint, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from tests.builders import ago, make_node
from tests.unit.planner.disruption.scale_in.scene import kept, make_scene_fleet, on, planned, told
from tests.unit.planner.placed import drained

DAY = 86_400.0
HOUR = 3_600.0
SETTLE = 300.0
FLEET = make_scene_fleet(
    expire_after_seconds=DAY, terminate_after_seconds=2 * HOUR, settle_seconds=SETTLE
)


def kept_for(seconds: float) -> Node:
    """An expired node that pods have kept for so long."""
    noted = FrozenMap({PODS_BLOCK_SINCE: rfc3339(ago(seconds))})
    return make_node("a", FLEET, created_at=ago(2 * DAY), annotations=noted)


def job(name: str, seconds: float) -> Pod:
    """A Job's pod that started so long ago."""
    start = ago(seconds)
    return on("a", name, owner="Job", created_at=start, scheduled_at=start, started_at=start)


@pytest.mark.parametrize(
    ("over_since", "code"), [(SETTLE - 60, "settling"), (SETTLE + 60, None)], ids=["yet", "over"]
)
def test_jobs_that_follow_each_other_do_not_put_the_end_off(
    over_since: float, code: str | None
) -> None:
    """On a node for builds a pod comes every minute: `settle_time` never passed there."""
    jobs = [job("first", 2 * SETTLE), job("last", 30)]
    others = (make_node("b", FLEET), on("b"))
    made = planned(FLEET, kept_for(2 * HOUR + over_since), *jobs, *others)
    assert drained(made) == ([] if code else ["a"])
    assert kept(made).get("a") == code


@pytest.mark.parametrize(
    ("tolerations", "born", "ends"),
    [
        pytest.param((Toleration(operator="Exists"),), 10, True, id="it came back"),
        pytest.param((Toleration(operator="Exists"),), 60, False, id="it was there before"),
        pytest.param((), 10, False, id="it does not come again"),
    ],
)
def test_pod_that_comes_back_to_the_draining_node_ends_with_it(
    tolerations: tuple[Toleration, ...], born: float, *, ends: bool
) -> None:
    """An agent that tolerates every taint was deleted every two seconds until the drain failed."""
    began = FrozenMap({DRAIN_STARTED: rfc3339(ago(30)), PODS_BLOCK_SINCE: rfc3339(ago(3 * HOUR))})
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    node = make_node("a", FLEET, created_at=ago(2 * DAY), annotations=began, taints=(taint,))
    agent = on("a", "agent", tolerations=tolerations, created_at=ago(born))
    made = planned(FLEET, node, agent, make_node("b", FLEET), on("b"))
    ended = [action for action in made.actions if isinstance(action, TerminateInstance)]
    assert [terminate_instance.stuck_terminating for terminate_instance in ended] == (
        [(agent.key,)] if ends else []
    )
    assert told(made, EvictPod) == ([] if ends else ["agent"])


@pytest.mark.parametrize(
    ("left", "gone"), [pytest.param(60, [], id="soon"), pytest.param(9 * DAY, ["slow"], id="late")]
)
def test_pod_that_was_deleted_with_a_longer_grace_period_is_deleted_once_more(
    left: float, gone: list[str]
) -> None:
    """`kubectl delete pod --grace-period` takes any number, and kept an expired node for years."""
    slow = on("a", "slow", deleting=True, deletion_at=ago(-left))
    made = planned(FLEET, kept_for(3 * HOUR), slow, make_node("b", FLEET), on("b"))
    assert [action.pod.name for action in made.actions if isinstance(action, DeletePod)] == gone
    assert kept(made).get("a") == (None if gone else "deleting")

"""Calls of EC2 that fail at each try: single failures are routine, an hour of them is not."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import EvictPod, TaintNode, TerminateInstance
from reconciler.model.cluster import Pod, Taint
from reconciler.model.errors import Forbidden
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import Held
from tests.builders import HOME, make_spec
from tests.unit.web.scene import Scene, raised

EVICTED = EvictPod(
    pod=PodKey(namespace="ns", name="a", uid="a"),
    node=NodeName("n-1"),
    grace_seconds=30,
    policy="scale-in",
    because="empty",
)
TROUBLE = 'fleet_reconciler_trouble{kind="ec2-call-fails"}'


def answered(outcome: Outcome, error: str, detail: str = "") -> Outcome:
    """The same action with this answer."""
    kinds: Mapping[str, OutcomeKind] = {"OutcomeUnknown": "unknown", "Unavailable": "failed"}
    text = detail or f"fleet fleet-1: {error}"
    return replace(outcome, kind=kinds.get(error, "refused"), error=error, detail=text)


def ended(number: int) -> Outcome:
    """The end of an idle node's instance."""
    action = TerminateInstance(
        instance=InstanceId(f"i-{number}"),
        node=NodeName(f"n-{number}"),
        fleet="primary-small",
        provider="ec2-fleet",
        fleet_id=FleetId("fleet-1"),
        region=HOME,
        decrement=True,
        from_capacity=3,
        policy="scale-in",
        because="empty",
        precondition="empty",
    )
    return Outcome(action=action, kind="applied")


def causes(scene: Scene) -> list[dict[str, Any]]:
    """What is wrong, as JSON."""
    found: list[dict[str, Any]] = json.loads(scene.ask("/api/status")[2])["verdict"]["causes"]
    return found


def tried(scene: Scene, *outcomes: Outcome, times: int, apart_seconds: float) -> None:
    """As many cycles with these outcomes."""
    for number in range(times):
        if number:
            scene.clock.advance(apart_seconds)
        scene.cycle(*outcomes)


@pytest.mark.parametrize(
    ("error", "headline", "remedy"),
    [
        ("Throttled", "set-capacity is throttled", "find who else calls"),
        ("Conflict", "set-capacity is refused", "read the cause"),
        ("Refused", "set-capacity is refused", "read the cause"),
        ("NotFound", "set-capacity is refused", "read the cause"),
        ("OutcomeUnknown", "set-capacity fails", "AWS's health page"),
        ("Unavailable", "set-capacity fails", "AWS's health page"),
    ],
)
def test_raise_that_fails_for_minutes_is_a_cause_whatever_the_answer(
    error: str, headline: str, remedy: str
) -> None:
    """EC2 throttled every raise for an hour, pods waited, and the verdict was OK."""
    with Scene() as scene:
        tried(scene, answered(raised(), error), times=4, apart_seconds=50)
        (cause,) = causes(scene)
        assert (cause["kind"], cause["level"]) == ("ec2-call-fails", "degraded")
        assert cause["headline"] == headline
        assert f"fleet fleet-1: {error}" in cause["detail"]
        assert "primary-small" in cause["detail"]
        assert cause["detail"].endswith("; each of 4 tries in 2m30s")
        assert remedy in cause["remedy"]
        assert scene.metric(TROUBLE) == 1
        scene.cycle(raised())
        assert causes(scene) == []
        assert scene.metric(TROUBLE) == 0


@pytest.mark.parametrize("error", ["Throttled", "Conflict", "Refused", "NotFound"])
def test_refusals_of_a_moment_are_routine(error: str) -> None:
    """Two writers, or a burst of raises, would turn the verdict red for a second."""
    refused = answered(raised(), error)
    with Scene() as scene:
        tried(scene, refused, times=5, apart_seconds=20)
        assert causes(scene) == []
        scene.cycle(raised())
        scene.clock.advance(60)
        tried(scene, refused, times=3, apart_seconds=20)
        assert causes(scene) == []
        scene.clock.advance(901)
        tried(scene, refused, times=3, apart_seconds=20)
        assert causes(scene) == [], "what was refused long ago says nothing of this one"


def test_raise_that_was_a_moment_late_twice_is_no_cause() -> None:
    """Another program changes the target now and then, which meets the demand each time."""
    with Scene() as scene:
        tried(scene, answered(raised(), "Conflict"), times=2, apart_seconds=600)
        assert causes(scene) == []


def test_raise_that_is_not_tried_any_more_is_over() -> None:
    """The pods are gone; between two tries of a cool-off it is not over."""
    with Scene() as scene:
        tried(scene, answered(raised(), "Refused"), times=4, apart_seconds=60)
        scene.clock.advance(300)
        scene.cycle()
        assert len(causes(scene)) == 1
        scene.clock.advance(700)
        scene.cycle()
        assert causes(scene) == []


def test_ends_of_many_instances_that_are_throttled_are_one_cause() -> None:
    """Idle nodes were billed for hours; a line for each of them would hide everything else."""
    throttled = [answered(ended(number), "Throttled") for number in range(150)]
    with Scene() as scene:
        tried(scene, *throttled, times=4, apart_seconds=50)
        (cause,) = causes(scene)
    assert cause["headline"] == "terminate-instance is throttled"
    assert cause["detail"].endswith("; each of 4 tries in 2m30s (and 149 more)")


def test_denials_of_many_calls_do_not_hide_other_causes() -> None:
    """Only the first causes are shown, and a denied right is denied for each instance."""
    denied = [
        replace(ended(number), kind="failed", error="Forbidden", detail="no right")
        for number in range(30)
    ]
    with Scene() as scene:
        scene.cycle(*denied, held=(Held(node=NodeName("n-1"), code="safety-stop"),))
        *denials, held = causes(scene)
    assert held["kind"] == "nodes-held"
    assert {cause["headline"] for cause in denials} == {"EC2 denies TerminateInstances"}
    assert denials[-1]["detail"].endswith(" failed: no right (and 27 more)")
    assert len(denials) == 3


@pytest.mark.parametrize(
    ("error", "kind"), [("Forbidden", "ec2-denied"), ("InsufficientCapacity", "no-capacity")]
)
def test_denials_and_want_of_capacity_keep_their_own_cause(error: str, kind: str) -> None:
    """Their remedies are others."""
    denied = replace(raised("failed"), error=error, detail="fleet fleet-1: no")
    with Scene() as scene:
        tried(scene, denied, times=4, apart_seconds=50)
        assert [cause["kind"] for cause in causes(scene)] == [kind]


def test_quota_is_no_want_of_capacity() -> None:
    """More sizes or zones change nothing where the account may have no more."""
    detail = "fleet fleet-1: VcpuLimitExceeded: more vCPU capacity than the limit allows"
    refused = replace(raised("failed"), error="InsufficientCapacity", detail=detail)
    with Scene() as scene:
        tried(scene, refused, times=4, apart_seconds=50)
        (cause,) = causes(scene)
    assert cause["kind"] == "quota-reached"
    assert "raise the quota" in cause["remedy"]


def test_refusals_that_are_explained_elsewhere_are_no_cause() -> None:
    """A budget, a protected instance, and a step that an earlier failure of the plan stopped."""
    budget = answered(Outcome(action=EVICTED, kind="refused"), "Refused")
    protected = answered(ended(1), "TerminationProtected")
    skipped = replace(ended(2), kind="refused", detail="an earlier step failed: no answer")
    with Scene() as scene:
        tried(scene, budget, protected, skipped, times=6, apart_seconds=60)
        assert causes(scene) == []


@pytest.mark.parametrize(
    ("detail", "remedy"),
    [
        ('pods "a" is forbidden: cannot create resource "pods/eviction"', "ClusterRole"),
        ('admission webhook "x" denied the request', "admission webhook or policy"),
    ],
)
def test_denied_eviction_lasts_while_its_node_rests(detail: str, remedy: str) -> None:
    """The next drain begins after half an hour: until then the verdict said OK."""
    denied = Outcome(action=EVICTED, kind="failed", error="Forbidden", detail=detail)
    pod = Pod(key=EVICTED.pod, spec=make_spec("1", "1Gi"), node_name=EVICTED.node)
    with Scene() as scene:
        for _ in range(3):
            scene.cycle(denied, pods=(pod,))
            scene.clock.advance(2100)
            scene.cycle(pods=(pod,))
            (cause,) = causes(scene)
            assert (cause["kind"], cause["level"]) == ("action-failed", "degraded")
            assert cause["headline"] == "The API server denies pod evictions"
            assert remedy in cause["remedy"]
        scene.clock.advance(601)
        scene.cycle(pods=(pod,))
        assert causes(scene) == [], "it is not tried any more"


def test_denied_eviction_of_a_pod_that_is_gone_is_over() -> None:
    """Nothing is left that would be evicted."""
    denied = Outcome(action=EVICTED, kind="failed", error="Forbidden", detail="no right")
    with Scene() as scene:
        scene.cycle(denied)
        assert len(causes(scene)) == 1
        scene.cycle()
        assert causes(scene) == []


def marked(key: str = "fleet-reconciler.io/removal-candidate") -> Outcome:
    """A taint on a node."""
    action = TaintNode(
        node=NodeName("n-1"),
        taint=Taint(key=key, value="idle", effect="PreferNoSchedule"),
        policy="scale-in",
        because="empty",
    )
    return Outcome(action=action, kind="applied")


@pytest.mark.parametrize(
    ("error", "headline", "remedy"),
    [
        ("Refused", "taint-node is refused", "admission policy"),
        ("Conflict", "taint-node is refused", "a controller"),
        ("Throttled", "taint-node is throttled", "priority and fairness"),
    ],
)
def test_change_of_a_node_that_the_api_server_refuses_for_minutes_is_a_cause(
    error: str, headline: str, remedy: str
) -> None:
    """An admission policy refused every taint for hours: no node went, and the verdict was OK."""
    refused = answered(marked(), error, "node n-1: no")
    with Scene() as scene:
        tried(scene, refused, times=3, apart_seconds=50)
        assert causes(scene) == []
        scene.clock.advance(50)
        scene.cycle(refused)
        (cause,) = causes(scene)
        assert (cause["kind"], cause["level"]) == ("action-failed", "degraded")
        assert cause["headline"] == headline
        assert cause["detail"] == (
            "fleet-reconciler.io/removal-candidate on n-1: node n-1: no; each of 4 tries in 2m30s"
        )
        assert remedy in cause["remedy"]
        scene.cycle(marked())
        assert causes(scene) == []


def test_state_that_cannot_be_saved_for_minutes_is_a_cause() -> None:
    """The next restart would forget that a rolling update is halted."""
    denied = Forbidden("lease kube-system/fleet-reconciler", "no right to update leases")
    with Scene() as scene:
        scene.cycle(unkept=denied)
        scene.clock.advance(100)
        scene.cycle(unkept=denied)
        assert causes(scene) == []
        scene.clock.advance(50)
        scene.cycle(unkept=denied)
        (cause,) = causes(scene)
        assert (cause["kind"], cause["level"]) == ("action-failed", "degraded")
        assert cause["headline"] == "State is not saved"
        assert "no right to update leases; for 2m30s" in cause["detail"]
        assert "halted updates" in cause["remedy"]
        scene.cycle()
        assert causes(scene) == []


def test_step_that_was_not_tried_ends_no_series() -> None:
    """A raise that failed keeps the ends of its fleet from being tried in that plan."""
    skipped = replace(ended(1), kind="refused", detail="an earlier step failed: no answer")
    with Scene() as scene:
        for _ in range(4):
            scene.cycle(answered(ended(1), "Throttled"))
            scene.clock.advance(50)
            scene.cycle(skipped)
        assert [cause["kind"] for cause in causes(scene)] == ["ec2-call-fails"]

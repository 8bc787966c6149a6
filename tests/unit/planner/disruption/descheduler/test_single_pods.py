"""Policies about single pods: violation made, and nothing else moved."""

from dataclasses import replace

import pytest

from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Taint, Toleration
from reconciler.model.containers import ContainerState
from reconciler.planner.descheduler_settings import (
    EvictorSettings,
    FailedPods,
    NodeAffinity,
    NodeTaints,
    PodLifeTime,
    PodScope,
    TooManyRestarts,
)
from tests.builders import labelled, make_node, requiring, selecting
from tests.unit.planner.disruption.descheduler.scene import (
    FLEET,
    Objects,
    descheduling,
    evicted,
    nodes,
    old,
    said,
)
from tests.unit.planner.disruption.interrupted_nodes import noticed
from tests.unit.planner.disruption.scale_in.scene import moves, planned

TAINT = Taint(key="team", value="a", effect="NoSchedule")


def test_pod_beyond_its_life_time_goes_and_a_younger_one_stays() -> None:
    """The oldest pods are what the policy is for."""
    settings = descheduling(PodLifeTime(seconds_max=3600))
    made = planned(settings, *nodes("a", "b"), old("a", "old"), old("a", "new", 3000))
    assert evicted(made) == {"old": "PodLifeTime"}
    assert moves(made) == {"old": "b"}


def test_life_time_of_states_leaves_other_pods_alone() -> None:
    """With states the policy is about pods that hang, not about those that serve."""
    settings = descheduling(PodLifeTime(seconds_max=60, states=frozenset({"CrashLoopBackOff"})))
    waits = ContainerState(kind="container", waiting="CrashLoopBackOff")
    objects: Objects = [
        *nodes("a", "b"),
        old("a", "fine"),
        old("a", "crashing", containers=(waits,)),
    ]
    assert evicted(planned(settings, *objects)) == {"crashing": "PodLifeTime"}


@pytest.mark.parametrize(
    ("states", "gone"),
    [((), ["runs"]), (("Succeeded",), ["done"]), (("Shutdown", "Succeeded"), ["done", "failed"])],
)
def test_life_time_is_over_for_ended_pods_where_a_state_names_them(
    states: tuple[str, ...], gone: list[str]
) -> None:
    """Such states were accepted, and nothing ever went."""
    settings = descheduling(PodLifeTime(seconds_max=60, states=frozenset(states)))
    objects: Objects = [
        *nodes("a", "b"),
        old("a", "runs"),
        old("a", "done", phase="Succeeded"),
        old("a", "failed", phase="Failed", reason="Shutdown"),
    ]
    assert sorted(evicted(planned(settings, *objects))) == gone


def test_states_of_init_containers_count_on_request_only() -> None:
    """An init container that waits is how a pod hangs before it ever runs."""
    waits = ContainerState(kind="init", waiting="ImagePullBackOff")
    objects: Objects = [*nodes("a", "b"), old("a", "hangs", containers=(waits,))]
    policy = PodLifeTime(seconds_max=60, states=frozenset({"ImagePullBackOff"}))
    assert evicted(planned(descheduling(policy), *objects)) == {}
    assert evicted(planned(descheduling(replace(policy, init_containers=True)), *objects))


def test_pod_with_too_many_restarts_goes_and_others_stay() -> None:
    """A pod that a broken node keeps crashing gets a new node."""
    settings = descheduling(TooManyRestarts(threshold=10))
    objects: Objects = [
        *nodes("a", "b"),
        old("a", "crashes", restarts=10),
        old("a", "once", restarts=9),
    ]
    assert evicted(planned(settings, *objects)) == {"crashes": "RemovePodsHavingTooManyRestarts"}


def test_restarts_of_init_containers_count_on_request_only() -> None:
    """As upstream counts them."""
    init = ContainerState(kind="init", restarts=6)
    objects: Objects = [*nodes("a", "b"), old("a", "crashes", restarts=5, containers=(init,))]
    policy = TooManyRestarts(threshold=10)
    assert evicted(planned(descheduling(policy), *objects)) == {}
    assert evicted(planned(descheduling(replace(policy, init_containers=True)), *objects))


@pytest.mark.parametrize(
    ("policy", "goes"),
    [
        (FailedPods(), True),
        (FailedPods(reasons=frozenset({"Evicted"})), True),
        (FailedPods(reasons=frozenset({"OOMKilled"})), True),
        (FailedPods(reasons=frozenset({"NodeLost"})), False),
        (FailedPods(exit_codes=frozenset({137})), True),
        (FailedPods(exit_codes=frozenset({1})), False),
        (FailedPods(seconds_min=10_000), False),
        (FailedPods(exclude_owner_kinds=frozenset({"ReplicaSet"})), False),
        (FailedPods(scope=PodScope(exclude=frozenset({"ns"}))), False),
    ],
)
def test_failed_pods_go_by_reason_exit_code_age_and_owner(
    policy: FailedPods, *, goes: bool
) -> None:
    """What is left of a failed pod needs no other node."""
    ended = ContainerState(kind="container", terminated="OOMKilled", exit_code=137)
    failed = old("a", "failed", phase="Failed", reason="Evicted", containers=(ended,), ready=False)
    made = planned(descheduling(policy), *nodes("a"), failed, old("a", "runs"))
    assert list(evicted(made)) == (["failed"] if goes else [])
    assert moves(made) == {}


def test_failed_pod_without_a_controller_goes_on_request_only() -> None:
    """Nobody would make it again, and somebody may want its logs."""
    failed = old("a", "failed", phase="Failed", owner=None)
    assert evicted(planned(descheduling(FailedPods()), *nodes("a"), failed)) == {}
    bare = EvictorSettings(failed_bare_pods=True)
    assert evicted(planned(descheduling(FailedPods(), evictor=bare), *nodes("a"), failed))


def test_pod_that_does_not_tolerate_a_taint_goes() -> None:
    """The taint came after the pod."""
    tainted = make_node("a", FLEET, taints=(TAINT,))
    tolerates = Toleration(key="team", operator="Exists")
    objects: Objects = [tainted, *nodes("b"), old("a", "must-go"), old("b", "elsewhere")]
    objects.append(old("a", "tolerates", tolerations=(tolerates,)))
    made = planned(descheduling(NodeTaints()), *objects)
    assert evicted(made) == {"must-go": "RemovePodsViolatingNodeTaints"}
    assert moves(made) == {"must-go": "b"}


@pytest.mark.parametrize(
    ("policy", "taint", "goes"),
    [
        (NodeTaints(excluded=frozenset({"team"})), TAINT, False),
        (NodeTaints(excluded=frozenset({"team=a"})), TAINT, False),
        (NodeTaints(excluded=frozenset({"team=b"})), TAINT, True),
        (NodeTaints(included=frozenset({"other"})), TAINT, False),
        (NodeTaints(included=frozenset({"team=a"})), TAINT, True),
        (NodeTaints(), replace(TAINT, effect="PreferNoSchedule"), False),
        (NodeTaints(prefer_no_schedule=True), replace(TAINT, effect="PreferNoSchedule"), True),
        (NodeTaints(), replace(TAINT, effect="NoExecute"), False),
    ],
)
def test_taints_count_by_name_and_effect(policy: NodeTaints, taint: Taint, *, goes: bool) -> None:
    """A taint that is left out by mistake empties nodes."""
    tainted = make_node("a", FLEET, taints=(taint,))
    made = planned(descheduling(policy), tainted, *nodes("b"), old("a", "pod"))
    assert bool(evicted(made)) == goes


def test_pod_is_not_moved_from_one_soft_taint_to_the_same_on_another_node() -> None:
    """There it would be proposed again, at every interval: kube-scheduler may choose it."""
    soft = replace(TAINT, effect="PreferNoSchedule")
    a = make_node("a", FLEET, taints=(soft, replace(soft, key="other")))
    b = make_node("b", FLEET, taints=(soft,))
    settings, pod = descheduling(NodeTaints(prefer_no_schedule=True)), old("a", "pod")
    assert evicted(planned(settings, a, b, pod)) == {}
    assert "it fits on no other node that would be better" in said(settings, pod, a, b)
    assert evicted(planned(settings, a, b, *nodes("c"), pod))


def test_taints_of_this_program_are_its_own_business() -> None:
    """A draining node's pods are moved by the drain, within its limits."""
    draining = make_node("a", FLEET, draining=True)
    made = planned(descheduling(NodeTaints()), draining, *nodes("b"), old("a", "pod"))
    assert evicted(made) == {}


def test_pod_whose_required_affinity_broke_goes() -> None:
    """The node's label changed after the pod was placed."""
    settings = descheduling(NodeAffinity())
    blue = make_node("b", FLEET, labels=labelled(**{**FLEET.labels, "colour": "blue"}))
    wants = requiring("colour", "In", "blue")
    objects: Objects = [
        *nodes("a"),
        blue,
        old("a", "moves", node_affinity=wants),
        old("a", "stays"),
    ]
    objects.append(old("b", "there", node_affinity=wants))
    made = planned(settings, *objects)
    assert evicted(made) == {"moves": "RemovePodsViolatingNodeAffinity"}
    assert moves(made) == {"moves": "b"}


def test_pod_that_no_node_takes_stays_and_says_so() -> None:
    """Evicted, it would wait."""
    pod = old("a", "pod", node_affinity=requiring("colour", "In", "blue"))
    settings = descheduling(NodeAffinity())
    assert evicted(planned(settings, *nodes("a", "b"), pod)) == {}
    text = said(settings, pod, *nodes("a", "b"))
    assert "RemovePodsViolatingNodeAffinity would evict it" in text
    assert "no-destination" in text


def test_policy_looks_at_its_namespaces_and_labels_only() -> None:
    """A policy for one team must not touch another's pods."""
    scope = PodScope(include=frozenset({"ns"}), selector=selecting(app="web"))
    settings = descheduling(PodLifeTime(seconds_max=60, scope=scope))
    objects: Objects = [
        *nodes("a", "b"),
        old("a", "web", labels={"app": "web"}),
        old("a", "db", labels={"app": "db"}),
        old("a", "other", namespace="other", labels={"app": "web"}),
    ]
    assert list(evicted(planned(settings, *objects))) == ["web"]


def test_pods_of_an_interrupted_node_are_evicted_once() -> None:
    """The first plan after the notice evicted them for the descheduler too."""
    settings = descheduling(PodLifeTime(seconds_max=3600))
    made = planned(settings, noticed("a", fleet=FLEET), *nodes("b"), old("a", "old"))
    evictions = [(a.pod.name, a.policy) for a in made.actions if isinstance(a, EvictPod)]
    assert evictions == [("old", "interruption")]

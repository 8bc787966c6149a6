"""What keeps a pod that a policy would evict: filters, limits, budgets, the pause."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.plan import Plan
from reconciler.planner.descheduler_settings import EvictorSettings, FailedPods, PodLifeTime
from reconciler.planner.disruption_settings import BlastRadius, DisruptionBudget
from tests.builders import ago, labelled, make_node, selecting
from tests.unit.planner.disruption.descheduler.scene import (
    FLEET,
    Objects,
    descheduling,
    evicted,
    nodes,
    old,
    said,
)
from tests.unit.planner.disruption.scale_in.scene import planned

POLICY = PodLifeTime(seconds_max=3600)
PLAIN = EvictorSettings()


def made_of(*objects: Any, evictor: EvictorSettings = PLAIN, **changed: Any) -> Plan:
    """The plan of a descheduler to which every pod of two hours is too old."""
    return planned(descheduling(POLICY, evictor=evictor, **changed), *nodes("a", "b"), *objects)


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (old("a", annotations=labelled(**{"karpenter.sh/do-not-disrupt": "true"})), "do-not"),
        (old("a", owner=None), "no-controller"),
        (old("a", owner="Job"), "started-job"),
        (old("a", owner="Workflow", ends_by_itself=True), "started-job"),
        (old("a", local_storage=True), "local-storage"),
        (old("a", priority=2_000_000_000), "critical"),
        (old("a", cpu="4"), "no-destination"),
    ],
)
def test_pod_that_may_not_be_moved_stays(pod: Pod, code: str) -> None:
    """The descheduler asks all that scale-in asks, and leaves critical pods alone."""
    assert evicted(made_of(pod, old("b", "other", 60))) == {}
    text = said(descheduling(POLICY), pod, *nodes("a", "b"), old("b", "other", 60))
    assert code in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fleet-reconciler.io/do-not-disrupt", "true"),
        ("karpenter.sh/do-not-disrupt", "true"),
        ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"),
    ],
)
def test_no_pod_leaves_a_node_that_is_annotated(key: str, value: str) -> None:
    """Whoever annotates a node wants it and its pods left alone, failed pods included."""
    kept = make_node("a", FLEET, annotations=labelled(**{key: value}))
    pods = old("a"), old("b", "other")
    settings = descheduling(POLICY, FailedPods())
    failed = old("a", "failed", phase="Failed")
    assert set(evicted(planned(settings, kept, *nodes("b"), *pods, failed))) == {"other"}
    assert f"its node is annotated {key}={value}" in said(settings, pods[0], kept, *nodes("b"))


@pytest.mark.parametrize(
    ("pod", "evictor"),
    [
        (old("a", local_storage=True), EvictorSettings(local_storage=True)),
        (old("a", priority=2_000_000_000), EvictorSettings(system_critical=True)),
    ],
)
def test_evictor_lifts_what_it_names(pod: Pod, evictor: EvictorSettings) -> None:
    """The evict… switches of a policy file."""
    assert evicted(made_of(pod, evictor=evictor))


@pytest.mark.parametrize(
    "evictor",
    [
        EvictorSettings(selector=selecting(app="web")),
        EvictorSettings(namespace_selector=selecting(team="a")),
        EvictorSettings(priority_below=0),
        EvictorSettings(claims_stay=True),
        EvictorSettings(without_budget_stays=True),
        EvictorSettings(replicas_min=2),
        EvictorSettings(age_min_seconds=7201),
        EvictorSettings(destinations=selecting(disk="fast")),
    ],
)
def test_evictor_keeps_what_it_leaves_out(evictor: EvictorSettings) -> None:
    """An argument without an effect evicts pods that somebody meant to protect."""
    pod = old("a", claims=("data",) if evictor.claims_stay else ())
    assert evicted(made_of(pod, evictor=evictor)) == {}


def test_limits_per_node_namespace_and_cycle_hold() -> None:
    """Unlimited unless they are set."""
    pods = [old(n, f"{n}-{i}", namespace=f"ns{i % 2}", cpu="100m") for n in "ab" for i in range(4)]
    assert len(evicted(made_of(*pods))) == 8
    assert len(evicted(made_of(*pods, per_cycle_max=3))) == 3
    assert sorted(n[0] for n in evicted(made_of(*pods, per_node_max=1))) == ["a", "b"]
    assert len(evicted(made_of(*pods, per_namespace_max=1))) == 2


def test_budget_keeps_the_last_replica() -> None:
    """An eviction that the budget refuses would be tried again and again."""
    web = {"app": "web"}
    pods = [old("a", f"web-{i}", labels=web) for i in range(2)]
    budget = PodDisruptionBudget(
        namespace="ns", name="web", selector=selecting(app="web"), disruptions_allowed=1
    )
    made = planned(descheduling(POLICY), *nodes("a", "b"), *pods, budgets=(budget,))
    assert len(evicted(made)) == 1


def test_disruption_budget_for_the_reason_holds_nodes() -> None:
    """`reasons: [deschedule]` counts nodes off which pods are evicted."""
    pods = [old(n, f"{n}-{i}", cpu="100m") for n in "ab" for i in range(2)]
    budget = DisruptionBudget(nodes=1, reasons=frozenset({"deschedule"}))
    settings = descheduling(POLICY)
    settings = replace(settings, disruption_budgets=(budget,))
    made = planned(settings, *nodes("a", "b", "c"), *pods)
    assert {name[0] for name in evicted(made)} == {"a"}


def test_blast_radius_holds() -> None:
    """Never more of one controller's pods than the config allows."""
    pods = [old("a", f"web-{i}", cpu="100m", owner=old("a", "web").owner) for i in range(4)]
    settings = descheduling(POLICY)
    radius = BlastRadius(pods=1, percent=False, per_seconds=600)
    assert (
        len(evicted(planned(replace(settings, blast_radius=radius), *nodes("a", "b"), *pods))) == 1
    )


def test_young_pod_stays_whatever_the_policy_says() -> None:
    """Evicted within the interval again, a pod would never serve; true after a restart too."""
    settings = descheduling(PodLifeTime(seconds_max=1), interval_seconds=600)
    young, grown = old("a", "young", 599), old("a", "grown", 601)
    assert list(evicted(planned(settings, *nodes("a", "b"), young, grown))) == ["grown"]


def test_pod_that_waited_long_for_its_node_is_as_young_as_on_its_node() -> None:
    """Pods that an autoscaler has made room for are older than their time on the node."""
    policy = PodLifeTime(seconds_max=3600)
    late = old("a", "late", started_at=ago(60), scheduled_at=ago(61))
    for settings in (
        descheduling(policy, interval_seconds=300),
        descheduling(policy, evictor=EvictorSettings(age_min_seconds=3600), interval_seconds=1),
    ):
        made = planned(settings, *nodes("a", "b"), late, old("a", "grown"))
        assert list(evicted(made)) == ["grown"]


def test_pod_that_has_not_started_is_younger_than_any_least_age() -> None:
    """Upstream has such a pod stay when `minPodAge` is set, and so does this."""
    waiting = old("a", "waiting", started_at=None, ready=False)
    assert evicted(made_of(waiting, evictor=EvictorSettings(age_min_seconds=1))) == {}
    assert len(evicted(made_of(waiting))) == 1


def test_next_round_waits_for_the_interval_that_the_lease_tells() -> None:
    """A restart in between changes nothing: the Lease tells."""
    settings = descheduling(POLICY, interval_seconds=300)
    objects: Objects = [*nodes("a", "b"), old("a")]
    assert evicted(planned(settings, *objects, last_descheduled_at=ago(299))) == {}
    assert evicted(planned(settings, *objects, last_descheduled_at=ago(300)))
    assert evicted(planned(settings, *objects, last_descheduled_at=ago(-9999))) == {}


def test_plan_tells_when_pods_were_evicted_last() -> None:
    """The loop keeps it until the Lease shows it."""
    made = made_of(old("a"))
    assert made.last_descheduled_at == made.at
    assert made_of().last_descheduled_at is None


def test_pods_of_nodes_that_are_not_ours_stay() -> None:
    """Nothing is known of what their owner wants."""
    made = planned(descheduling(POLICY), *nodes("a"), make_node("foreign", None), old("foreign"))
    assert evicted(made) == {}


def test_no_node_is_drained_or_ended() -> None:
    """The descheduler only evicts."""
    made = made_of(old("a"))
    assert {type(action).__name__ for action in made.actions} <= {
        "EvictPod",
        "AnnotateNode",
        "SetCapacity",
    }
    assert FLEET.name in {fleet.fleet for fleet in made.fleets}

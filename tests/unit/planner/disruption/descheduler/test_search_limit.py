"""Pods that find no place: what is known is not searched for again, and the rest is limited."""

from datetime import timedelta

import pytest

from reconciler.model.cluster import Owner, Pod
from reconciler.planner.descheduler_settings import (
    PodLifeTime,
    PolicyArguments,
    RemoveDuplicates,
)
from reconciler.planner.disruption.descheduler import search_limit
from reconciler.planner.disruption.descheduler.places import Places
from reconciler.planner.disruption.descheduler.search_limit import SearchLimit
from tests.builders import HOSTNAME, NOW, near
from tests.unit.planner.disruption.descheduler.scene import (
    Objects,
    descheduling,
    evicted,
    nodes,
    old,
)
from tests.unit.planner.disruption.scale_in.scene import planned

WEB = Owner(kind="ReplicaSet", name="web", uid="1")
TOO_OLD = PodLifeTime(seconds_max=60)


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that grows with each search that takes a pod off its node."""
    found: list[object] = []
    chosen = Places._chosen

    def counted(places: Places, *arguments: object) -> object:
        found.append(arguments)
        return chosen(places, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Places, "_chosen", counted)
    return found


def crowded(count: int, per_node: int) -> Objects:
    """Replicas on half of the nodes; kube-scheduler would put each back, as the rest is fuller."""
    cluster = nodes(*[f"n{i:03}" for i in range(count)])
    names = [node.name for node in cluster]
    web = [
        old(name, f"{name}-{k}", owner=WEB, cpu="10m")
        for name in names[: count // 2]
        for k in range(per_node)
    ]
    return [*cluster, *web, *[old(name, cpu="3") for name in names[count // 2 :]]]


def test_replicas_that_have_to_stay_are_searched_for_once_per_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing goes, so there is no rest: each plan would pay for a search of each replica."""
    searches = count_searches(monkeypatch)
    assert evicted(planned(descheduling(RemoveDuplicates()), *crowded(20, 30))) == {}
    assert len(searches) == 10


def test_pods_of_a_full_cluster_are_searched_for_once_per_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No node has room for them: that does not depend on the node from which they would go."""
    searches = count_searches(monkeypatch)
    pods = [old(f"n{i}", f"p{i}-{k}", cpu="1") for i in range(10) for k in range(4)]
    cluster = nodes(*[f"n{i}" for i in range(10)])
    assert evicted(planned(descheduling(TOO_OLD), *cluster, *pods)) == {}
    assert searches == []


def test_place_that_an_evicted_pod_takes_is_seen_by_the_next_pod() -> None:
    """An answer that was kept too long would put two pods into room for one."""
    pods = [old("a", f"p{i}", cpu="1500m") for i in range(2)]
    made = planned(descheduling(TOO_OLD), *nodes("a", "b"), *pods, old("b", "x", 60, cpu="1500m"))
    assert len(evicted(made)) == 1


def with_rules(count: int) -> list[Pod]:
    """Pods whose own anti-affinity keeps each on its node: every search is one of its own."""
    labels = {"app": "db"}
    return [
        old(f"n{i}", f"db-{i}", labels=labels, pod_anti_affinity=(near(HOSTNAME, **labels),))
        for i in range(count)
    ]


@pytest.mark.parametrize("policies", [(TOO_OLD,), (TOO_OLD, TOO_OLD)])
def test_failed_searches_of_a_policy_are_limited(
    monkeypatch: pytest.MonkeyPatch, policies: tuple[PolicyArguments, ...]
) -> None:
    """Each policy has its own searches, so that the first does not use up those of the last."""
    monkeypatch.setattr(search_limit, "FAILED_FOR_ALL", 3)
    monkeypatch.setattr(search_limit, "FAILED_MAX", 3)
    searches = count_searches(monkeypatch)
    cluster = nodes(*[f"n{i}" for i in range(8)])
    assert evicted(planned(descheduling(*policies), *cluster, *with_rules(8))) == {}
    assert len(searches) == 3 * len(policies)


def test_every_pod_has_its_turn_within_some_minutes() -> None:
    """Always the same pods first, and the others would never go."""
    pods = with_rules(40)
    allowed: list[str] = []
    for turn in range(search_limit.TURNS):
        limit = SearchLimit(NOW + timedelta(seconds=turn * search_limit.TURN_SECONDS))
        for _ in range(search_limit.FAILED_FOR_ALL):
            assert all(map(limit.allows, pods))
            limit.count_failed()
        allowed += [pod.key.name for pod in pods if limit.allows(pod)]
    assert sorted(allowed) == sorted(pod.key.name for pod in pods)

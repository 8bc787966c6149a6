"""Pods fill nodes that were bought for others: the plan says so and repeats the purchase."""

from dataclasses import replace

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Pod
from reconciler.model.snapshot import Snapshot
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import bought

FLEET = make_fleet_settings(labels={"team": "data"})
POD = make_pod(node_selector={"team": "data"}, sector="primary")
OTHERS = make_fleet_settings("large", "default", labels={"team": "web"})


def taken_by(
    pods: tuple[Pod, ...], *, bought_seconds_ago: float, joined_seconds_ago: float = 120
) -> tuple[Snapshot, PlannerSettings]:
    """A cluster in which these pods fill the node that was asked for POD."""
    node = make_node("a", FLEET, created_at=ago(joined_seconds_ago))
    first = make_snapshot(POD, cloud=make_cloud(make_fleet(FLEET)))
    (memory,) = plan(first, make_settings(FLEET)).demands
    memory = replace(memory, bought_at=ago(bought_seconds_ago))
    cloud = make_cloud(make_fleet(FLEET, 1), make_fleet(OTHERS))
    settings = make_settings(FLEET, OTHERS, default_sector="default")
    return make_snapshot(POD, node, *pods, cloud=cloud, demands=(memory,)), settings


def fillers(sector: str | None = None) -> tuple[Pod, ...]:
    """Five pods that leave no room on node a."""
    return make_pods(5, "filler", namespace="web", sector=sector, node="a", cpu="790m")


def test_repeated_purchase_says_who_took_the_place() -> None:
    """Two purchases for one pod look like a fault of the planner."""
    snapshot, settings = taken_by(fillers(), bought_seconds_ago=300)
    made = plan(snapshot, settings)
    assert (bought(made), [m.strikes for m in made.demands]) == (1, [0])
    (raised,) = (a for a in made.actions if isinstance(a, SetCapacity))
    assert raised.because == (
        "1 pending pod needs 1 more node: 1 node of primary-small joined for such pods and 5 pods "
        "of sector default took the place"
    )
    assert raised.places_taken == (
        "1 node of primary-small joined for such pods and other pods took the place: web/filler-0 "
        "(sector default), web/filler-1 (sector default), web/filler-2 (sector default) and 2 more"
    )
    assert raised.places_taken in explain(snapshot, settings, made, pods=["ns/pod"]).pods[0].because


def test_text_for_tenants_names_no_pod_of_another_namespace() -> None:
    """`because` becomes an Event in the namespace of the pod that waits."""
    made = plan(*taken_by(fillers(), bought_seconds_ago=3600))
    texts = [r.detail for u in made.unplaceable for r in u.reasons]
    texts += [a.because for a in plan(*taken_by(fillers(), bought_seconds_ago=300)).actions]
    assert any("took the place" in text for text in texts)
    assert not any("filler" in text for text in texts)


@pytest.mark.parametrize(
    ("sector", "bought_ago", "joined_ago", "nodes"),
    [
        (None, 700, 120, 1),
        (None, 3600, 120, 0),
        (None, 3600, 1790, 1),
        (None, 90_000, 1790, 0),
        (None, 90_000, 1810, 1),
        ("primary", 3600, 120, 1),
    ],
)
def test_purchase_that_other_sectors_fill_is_repeated_ever_more_slowly(
    sector: str | None, bought_ago: float, joined_ago: float, nodes: int
) -> None:
    """A backlog of pods that cannot have nodes of their own would make another's fleet grow."""
    made = plan(
        *taken_by(fillers(sector), bought_seconds_ago=bought_ago, joined_seconds_ago=joined_ago)
    )
    assert (bought(made), made.quarantined) == (nodes, 0)
    if not nodes:
        ours = [u for u in made.unplaceable if u.pod == POD.key]
        assert {r.code for r in ours[0].reasons} == {"no-progress"}
        assert "more nodes are asked for from 20" in ours[0].reasons[0].detail

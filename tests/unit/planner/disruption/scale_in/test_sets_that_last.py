"""What passes gives no replacement set up, and no time in the future keeps one."""

import pytest

from reconciler.model.actions import DRAIN_STARTED, REPLACEMENT_SET
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    ago,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in import scene
from tests.unit.planner.disruption.scale_in.consolidation import SMALL, planned
from tests.unit.planner.disruption.scale_in.scene import kept, on
from tests.unit.planner.disruption.scale_in.set_under_way import (
    FLEETS,
    MID,
    NAMES,
    came,
    decided,
    given_up,
    nodes,
    pods,
)


@pytest.mark.parametrize("joined", [True, False], ids=["new node has come", "is still to come"])
def test_a_set_outlasts_one_plan_in_which_ec2_does_not_answer(joined: bool) -> None:
    """The node that was bought for it was ended as idle, and the set bought again."""
    objects: list[Node | Pod] = [*nodes(400), *pods(), *([came(300)] if joined else [])]
    cloud = make_cloud(regions=frozenset(), silent=frozenset({HOME}), instances_known=False)
    made = plan(make_snapshot(*objects, cloud=cloud), make_settings(*FLEETS, consolidation=True))
    assert given_up(made) == set()


def test_a_set_outlasts_an_instance_refresh_of_its_group() -> None:
    """No instance of the group may be ended meanwhile, which passes."""
    objects: list[Node | Pod] = [*nodes(400), *pods(), came(300)]
    lives = make_fleet(MID, 1), make_fleet(SMALL, 3, removals_halted="an instance refresh runs")
    cloud = make_cloud_of([o for o in objects if isinstance(o, Node)], *lives)
    made = plan(make_snapshot(*objects, cloud=cloud), make_settings(*FLEETS, consolidation=True))
    assert given_up(made) == set()


def test_a_set_outlasts_jobs_of_a_minute_on_the_nodes_that_are_left() -> None:
    """A Job keeps its node until it has ended."""
    jobs = [on(name, f"job-{name}", "100m", owner="Job") for name in NAMES]
    made = planned(*nodes(400), *pods(), *jobs, came(300), small=1, fleets=FLEETS)
    assert given_up(made) == set()


def test_a_set_outlasts_seconds_in_which_its_last_node_is_not_ready() -> None:
    """Such a node is no candidate for the moment."""
    last = nodes(400, ready=False, ready_changed_at=ago(5))[0]
    full = [make_node(f"f{n}", MID) for n in range(5)]
    others = [on(node.name, cpu="7500m") for node in full]
    made = planned(last, on("a"), came(300), *full, *others, small=6, fleets=FLEETS)
    assert given_up(made) == set()


def test_set_dated_in_the_future_is_not_waited_for_until_then() -> None:
    """Its time counted as now in every plan, so that it never passed."""
    full = make_node("full", MID), on("full", cpu="6")
    made = scene.planned(
        make_settings(MID, SMALL, consolidation=True), *nodes(-365 * 86_400), *pods(), *full
    )
    assert given_up(made) == set(NAMES)


def test_a_set_has_time_while_one_of_its_drains_is_running() -> None:
    """As the docstring of `_why_late` says; it was given up half done."""
    started = {DRAIN_STARTED: rfc3339(ago(30)), REPLACEMENT_SET: decided(5000)}
    leaving = make_node("a", SMALL, annotations=FrozenMap(started), draining=True)
    keeps = FrozenMap({"karpenter.sh/do-not-disrupt": "true"})
    others = [on(name, cpu="2500m", annotations=keeps) for name in "bc"]
    made = planned(leaving, *nodes(5000)[1:], on("a"), *others, came(4900), small=1, fleets=FLEETS)
    assert "a" not in kept(made)
    assert given_up(made) == set()


def test_set_whose_nodes_all_drain_is_not_given_up_in_every_plan() -> None:
    """Each plan dated the failure of its new node again, as the draining nodes keep the mark."""
    noted = FrozenMap({DRAIN_STARTED: rfc3339(ago(30)), REPLACEMENT_SET: decided(5000)})
    leaving = [make_node(name, SMALL, annotations=noted, draining=True) for name in NAMES]
    settings = make_settings(*FLEETS, consolidation=False)
    made = scene.planned(settings, *leaving, *pods(), came(4900))
    assert "replacement-set-failed" not in {key for _, key, _ in scene.annotations_set(made)}

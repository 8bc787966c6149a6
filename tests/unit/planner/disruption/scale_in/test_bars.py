"""What keeps a node with pods: a pod that may not move, an annotation, a budget (section 5)."""

from typing import Any

import pytest

from reconciler.model.actions import DO_NOT_DISRUPT, EvictPod, TaintNode
from reconciler.model.cluster import PodDisruptionBudget
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOSTNAME,
    ago,
    make_cloud_of,
    make_fleet,
    make_node,
    make_settings,
    make_snapshot,
    selecting,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    moves,
    on,
    planned,
    told,
    unneeded,
)

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
OWNER_ALLOWS = {"annotations": FrozenMap({SAFE_TO_EVICT: "true"})}


def alone(fleet: FleetSettings, **changed: Any) -> Plan:
    """The plan for a node with one pod, beside a busy node that has room for it."""
    pod = on("a", **{"cpu": "100m", **changed})
    return planned(fleet, unneeded("a", fleet), make_node("b", fleet), pod, full("b"))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"owner": "Job"}, "started-job"),
        ({"owner": "Workflow", "ends_by_itself": True}, "started-job"),
        ({"owner": None}, "no-controller"),
        ({"local_storage": True}, "local-storage"),
        ({"namespace": "kube-system"}, "kube-system"),
        ({"termination_grace_seconds": 121}, "long-grace"),
        ({"annotations": FrozenMap({DO_NOT_DISRUPT: "true"})}, "do-not-disrupt"),
        ({"annotations": FrozenMap({"karpenter.sh/do-not-disrupt": "true"})}, "do-not-disrupt"),
        ({"annotations": FrozenMap({SAFE_TO_EVICT: "false"})}, "do-not-disrupt"),
        ({"unreadable": True}, "unreadable"),
        ({"node_selector": {HOSTNAME: "a"}}, "no-destination"),
    ],
)
def test_pod_that_may_not_or_cannot_move_keeps_its_node(changed: dict[str, Any], code: str) -> None:
    """Work in flight, data or an owner's word would be lost, or a pod fit nowhere."""
    fleet = make_scene_fleet()
    made = planned(
        fleet,
        unneeded("a", fleet),
        make_node("b", fleet),
        on("a", "bad", cpu="100m", **changed),
        on("a"),
        full("b"),
    )
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert kept(made)["a"] == code


def test_pod_that_karpenter_would_keep_for_a_time_keeps_its_node_until_then() -> None:
    """It was moved at once, and nobody was told how long it stays."""
    notes = FrozenMap({"karpenter.sh/do-not-disrupt": "4h"})
    made = alone(make_scene_fleet(), annotations=notes, started_at=ago(3600))
    assert told(made, TaintNode) + told(made, EvictPod) == []
    detail = next(each.detail for each in made.kept if each.node == "a")
    assert "karpenter.sh/do-not-disrupt=4h, until 2026-01-31T15:00:00Z" in detail
    later = alone(make_scene_fleet(), annotations=notes, started_at=ago(5 * 3600))
    assert told(later, TaintNode) == ["a"]


@pytest.mark.parametrize(
    "changed",
    [
        {"owner": "StatefulSet"},
        {"termination_grace_seconds": 120},
        {"owner": None, **OWNER_ALLOWS},
        {"owner": "Job", **OWNER_ALLOWS},
        {"local_storage": True, **OWNER_ALLOWS},
    ],
)
def test_pod_that_may_move_lets_its_node_go(changed: dict[str, Any]) -> None:
    """What is stateful, slow to stop or released by its owner would keep nodes for ever."""
    made = alone(make_scene_fleet(), **changed)
    assert told(made, TaintNode) == ["a"]
    assert told(made, EvictPod) == ["on-a"]


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ("move_bare_pods", {"owner": None}),
        ("move_local_storage", {"local_storage": True}),
        ("move_system_pods", {"namespace": "kube-system"}),
    ],
)
def test_settings_lift_their_bar(setting: str, changed: dict[str, Any]) -> None:
    """The switches would do nothing."""
    assert told(alone(make_scene_fleet(**{setting: True}), **changed), TaintNode) == ["a"]
    others = {"move_bare_pods", "move_local_storage", "move_system_pods"} - {setting}
    lifted = make_scene_fleet(**dict.fromkeys(others, True))
    assert told(alone(lifted, **changed), TaintNode) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fleet-reconciler.io/do-not-disrupt", "true"),
        ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ],
)
def test_annotated_node_stays(key: str, value: str) -> None:
    """An operator who looks at a node would see it vanish."""
    fleet = make_scene_fleet()
    node = unneeded("a", fleet, annotations={key: value})
    made = planned(fleet, node, make_node("b", fleet), on("a"), full("b"))
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "protected"


# ---- budgets ------------------------------------------------------------------------------


def web_budget(allowed: int, name: str = "web", **changed: Any) -> PodDisruptionBudget:
    """A budget over `app=web`."""
    return PodDisruptionBudget(
        namespace="ns",
        name=name,
        selector=selecting(app="web"),
        disruptions_allowed=allowed,
        **changed,
    )


@pytest.mark.parametrize(
    ("budgets", "begins"),
    [
        ((web_budget(1),), True),
        ((web_budget(0),), False),
        ((web_budget(1), web_budget(1, "two")), False),
        ((web_budget(1, unreadable=True),), False),
    ],
)
def test_budgets_are_kept_before_a_drain_begins(
    budgets: tuple[PodDisruptionBudget, ...], begins: bool
) -> None:
    """A node would stay tainted while the Eviction API refuses for hours."""
    fleet = make_scene_fleet()
    pod = on("a", labels={"app": "web"})
    nodes = [unneeded("a", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, pod, full("b"), budgets=budgets)
    assert told(made, TaintNode) == (["a"] if begins else [])


@pytest.mark.parametrize(
    ("pods", "allowed", "evicted"),
    [(2, 2, 2), (2, 1, 1), (3, 1, 1), (4, 1, 0), (5, 2, 2), (7, 2, 0), (2, 0, 0)],
)
def test_budget_must_allow_one_pod_now_and_all_within_three_rounds(
    pods: int, allowed: int, evicted: int
) -> None:
    """Two replicas with maxUnavailable 1 would keep their node, or a long drain would stop it."""
    fleet = make_scene_fleet()
    webs = [on("a", f"w{n}", "100m", labels={"app": "web"}) for n in range(pods)]
    nodes = [unneeded("a", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, *webs, full("b"), budgets=(web_budget(allowed),))
    assert told(made, EvictPod) == [f"w{n}" for n in range(evicted)]
    assert told(made, TaintNode) == (["a"] if evicted else [])
    assert (kept(made).get("a") == "budget") is (evicted == 0)
    assert sorted(moves(made)) == told(made, EvictPod)


def test_drain_in_rounds_says_how_many() -> None:
    """A reader would take one eviction of three pods for a fault."""
    fleet = make_scene_fleet()
    webs = [on("a", f"w{n}", "100m", labels={"app": "web"}) for n in range(3)]
    nodes = [unneeded("a", fleet), make_node("b", fleet)]
    settings = make_settings(fleet)
    cloud = make_cloud_of(nodes, make_fleet(fleet, 2))
    snapshot = make_snapshot(*nodes, *webs, full("b"), cloud=cloud, budgets=(web_budget(1),))
    made = plan(snapshot, settings)
    (found,) = explain(snapshot, settings, made, nodes=["a"]).nodes
    assert (found.verdict, "in 3 rounds, 1 now" in found.because) == ("leaves", True)


def test_budget_refusal_leaves_the_timer_as_it_is() -> None:
    """The node would have to be unneeded from the start each time a rollout is under way."""
    fleet = make_scene_fleet()
    pod = on("a", labels={"app": "web"})
    made = planned(
        fleet, unneeded("a", fleet), make_node("b", fleet), pod, full("b"), budgets=(web_budget(0),)
    )
    assert annotations_set(made) == set()


def test_nodes_that_a_budget_keeps_do_not_use_up_the_time_of_the_others() -> None:
    """Sixty nodes whose budget never allows anything would be all that a plan ever looks at."""
    fleet = make_scene_fleet()
    guarded = [unneeded(f"g{n:02}", fleet, 7200) for n in range(60)]
    pods = [on(f"g{n:02}", cpu="400m", labels={"app": "web"}) for n in range(60)]
    nodes = [*guarded, unneeded("y", fleet), make_node("z", fleet)]
    pods += [on("y", cpu="600m"), full("z", "3")]
    made = planned(fleet, *nodes, *pods, budgets=(web_budget(0),))
    assert told(made, TaintNode) == ["y"]


def test_budget_is_shared_by_all_drains_of_a_plan() -> None:
    """Two nodes would each use the one disruption that there is."""
    fleet = make_scene_fleet(non_empty_at_once_max=10)
    labels = {"app": "web"}
    nodes = [unneeded(n, fleet) for n in "ab"] + [make_node(n, fleet) for n in "xyz"]
    pods = [on("a", labels=labels), on("b", labels=labels), *(full(n) for n in "xyz")]
    made = planned(fleet, *nodes, *pods, budgets=(web_budget(1),))
    assert told(made, TaintNode) == ["a"]
    assert kept(made)["b"] == "budget"


def test_budget_that_keeps_many_ripe_nodes_takes_no_place_from_the_others() -> None:
    """Half of the places went to them, the other half to nodes whose time has not come."""
    fleet = make_scene_fleet()
    guarded = [unneeded(f"g{n:02}", fleet, 7200) for n in range(40)]
    busy = [make_node(f"z{n:02}", fleet) for n in range(60)]
    pods = [on(node.name, labels={"app": "web"}) for node in guarded]
    pods += [full(node.name) for node in busy]
    nodes = [*guarded, *busy, unneeded("eligible", fleet)]
    settings = make_settings(fleet, consolidation=True)
    made = planned(settings, *nodes, *pods, on("eligible"), budgets=(web_budget(0),))
    assert told(made, TaintNode) == ["eligible"]

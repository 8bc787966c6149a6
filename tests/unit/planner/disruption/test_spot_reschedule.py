"""Pods move off on-demand nodes where spot nodes have room (docs/spot-rescheduler.md)."""

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    UNNEEDED_TAINT,
    EvictPod,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod, PodDisruptionBudget, Taint, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.planner.disruption.methods.spot_reschedule import TRIALS_MAX
from reconciler.planner.disruption_settings import NodeLabel, SpotRescheduler
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import Headroom
from tests.builders import (
    AWAY,
    NOW,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    selecting,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    make_scene_fleet,
    moves,
    on,
    planned,
    told,
)
from tests.unit.planner.disruption.spot_nodes import (
    ON_DEMAND,
    PREFERS_SPOT,
    RESCHEDULED,
    RULES,
    SPOT,
    begun,
    made_of,
    nodes,
    settings,
    stays,
)


def test_pods_move_to_the_spot_node_with_the_most_free_cpu() -> None:
    """Without it on-demand nodes stay full when spot capacity is back."""
    made = made_of(*nodes("a", "st"), on("a"), on("s", cpu="2"), on("t", cpu="1"))
    assert begun(made) == ["a"]
    assert moves(made) == {"on-a": "t"}
    (eviction,) = (a for a in made.actions if isinstance(a, EvictPod))
    assert eviction.policy == "spot-reschedule"


def test_least_requested_on_demand_node_goes_first_and_alone() -> None:
    """The fewest pods per emptied node, and one node at a time."""
    made = made_of(*nodes("abc"), on("a", cpu="2"), on("b", cpu="1"), on("c", cpu="1500m"), on("s"))
    assert begun(made) == ["b"]
    assert {name: stays(made)[name] for name in "ac"} == dict.fromkeys("ac", "spot-reschedule-turn")


def test_node_that_is_none_of_ours_any_more_stops_nothing() -> None:
    """One that was being emptied when its region left the config would stop it for good."""
    stray = make_node("x", region=AWAY, taints=(RESCHEDULED,))
    assert begun(made_of(*nodes(), stray, on("a"), on("s"), on("x"))) == ["a"]


def test_node_whose_pods_do_not_all_fit_keeps_every_one() -> None:
    """Half of an emptied node saves nothing."""
    made = made_of(*nodes(), on("a", "x", "2"), on("a", "y", "1"), on("s", cpu="2"))
    assert (begun(made), told(made, EvictPod)) == ([], [])
    assert stays(made)["a"] == "no-spot-room"


def test_pods_may_share_out_over_all_spot_nodes() -> None:
    """The spot nodes count together."""
    made = made_of(
        *nodes("a", "st"), on("a", "x", "2"), on("a", "y", "2"), on("s", cpu="2"), on("t", cpu="2")
    )
    assert sorted(map(str, moves(made).values())) == ["s", "t"]


def test_other_on_demand_nodes_take_nothing() -> None:
    """Moving between on-demand nodes would go on for ever."""
    made = made_of(*nodes("ab"), on("a", cpu="1"), on("b"), on("s", cpu="3800m"))
    assert begun(made) == []
    assert {name: stays(made)[name] for name in "ab"} == dict.fromkeys("ab", "no-spot-room")


def test_nothing_moves_while_pods_wait() -> None:
    """What moves would take the room that they wait for."""
    waiting = make_pod("waiting", cpu="1")
    made = made_of(*nodes(), on("a", cpu="3"), on("s"), waiting)
    assert begun(made) == []
    assert stays(made)["a"] == "pods-waiting"


@pytest.mark.parametrize(
    "never", [{"node_selector": {"no-such-label": "x"}}, {"cpu": "1000"}, {"sector": "unknown"}]
)
def test_pod_that_nothing_takes_stops_no_moves(never: dict[str, Any]) -> None:
    """One pod of one tenant would keep every on-demand node of the cluster for ever."""
    made = made_of(*nodes(), on("a", cpu="3"), on("s"), make_pod("never", **never))
    assert [u.pod.name for u in made.unplaceable] == ["never"]
    assert begun(made) == ["a"]


@pytest.mark.parametrize(("seconds", "goes"), [(599, False), (600, True), (-60, False)])
def test_pause_after_the_last_eviction_survives_a_restart(seconds: float, goes: bool) -> None:
    """The Lease knows it; a time in the future counts as now."""
    made = made_of(*nodes(), on("a"), on("s"), last_drain_at=ago(seconds))
    assert begun(made) == (["a"] if goes else [])
    if not goes:
        assert stays(made)["a"] == "node-drain-delay"


def test_drain_of_scale_in_counts_as_the_one_node() -> None:
    """Two nodes' pods would look for room at once."""
    made = made_of(*nodes("a", "s"), drained("t", SPOT), on("a"), on("s"), on("t"))
    assert begun(made) == []
    assert stays(made)["a"] == "spot-reschedule-turn"


def test_node_with_both_labels_is_a_spot_node() -> None:
    """It is never emptied, and takes pods."""
    rules = SpotRescheduler(on_demand=NodeLabel(key="fleet"), spot=RULES.spot)
    made = made_of(*nodes("a", "s"), on("a"), on("s", cpu="1"), rules=rules)
    assert begun(made) == ["a"]
    assert moves(made) == {"on-a": "s"}


def test_pod_without_controller_keeps_its_node_unless_the_config_lets_it_go() -> None:
    """Nothing would make it again."""
    objects: list[Node | Pod] = [*nodes(), on("a", owner=None), on("s")]
    assert stays(made_of(*objects))["a"] == "no-controller"
    freed = SpotRescheduler(on_demand=RULES.on_demand, spot=RULES.spot, move_bare_pods=True)
    assert begun(made_of(*objects, rules=freed)) == ["a"]


def test_critical_pod_keeps_its_node() -> None:
    """The cluster may depend on it."""
    made = made_of(*nodes(), on("a", priority=2_000_000_000), on("s"))
    assert stays(made)["a"] == "critical"


def test_spot_node_that_drains_takes_nothing() -> None:
    """Pods would be moved twice."""
    gone = drained("s", SPOT)
    made = made_of(*nodes("a", ""), gone, on("a"))
    assert stays(made)["a"] == "no-spot-room"


def test_without_a_taint_pods_that_would_come_to_on_demand_nodes_stay() -> None:
    """kube-scheduler takes the emptiest node: pods would move in circles."""
    plain = make_fleet_settings(name="plain", spot=False, scale_in=ON_DEMAND.scale_in)
    objects = [make_node("a", plain), make_node("b", plain), make_node("s", SPOT)]
    made = made_of(*objects, on("a"), on("b"), on("s", cpu="2"), fleets=(plain, SPOT))
    assert begun(made) == []
    assert stays(made)["a"] == "not-preferred"


@pytest.mark.parametrize(("pods", "on_spot"), [(1, "1"), (2, "500m")])
def test_pods_that_would_come_to_an_on_demand_node_with_headroom_stay(
    pods: int, on_spot: str
) -> None:
    """kube-scheduler knows nothing of headroom: the first or the second of them went there."""
    plain = make_fleet_settings(name="plain", spot=False, scale_in=ON_DEMAND.scale_in)
    kept_there = on("b", cpu="750m", annotations=FrozenMap({DO_NOT_DISRUPT: "true"}))
    objects: list[Node | Pod] = [
        *(make_node(name, plain) for name in "ab"),
        *nodes("", "s"),
        *(on("a", f"web-{number}", cpu=f"{1000 // pods}m") for number in range(pods)),
        kept_there,
        on("s", cpu=on_spot),
    ]
    room = Headroom(sector="primary", cpu_milli=3200, memory_bytes=2**30)
    made = planned(settings(fleets=(plain, SPOT), headroom=(room,)), *objects)
    assert [headroom_plan.missing for headroom_plan in made.headroom] == [0]
    assert begun(made) == []
    assert stays(made)["a"] == "not-preferred"


def test_pods_that_would_take_headroom_on_a_spot_node_stay() -> None:
    """It would be bought again."""
    room = Headroom(sector="primary", cpu_milli=3200, memory_bytes=2**30)
    objects: list[Node | Pod] = [*nodes("a", "st"), on("a", cpu="1")]
    objects += [on("s"), on("t", cpu="2900m")]
    made = planned(settings(headroom=(room,)), *objects)
    assert begun(made) == []
    assert stays(made)["a"] == "headroom"


def test_spot_node_whose_soft_taint_comes_off_is_preferred_to_headroom() -> None:
    """As long as it is there kube-scheduler would rather fill the room of headroom."""
    room = Headroom(sector="primary", cpu_milli=600, memory_bytes=12 * 2**30)
    unneeded = Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule")
    made = planned(
        settings(headroom=(room,)),
        *nodes(),
        make_node("t", SPOT, taints=(unneeded,)),
        on("a", cpu="1"),
        on("s", cpu="2500m"),
        make_pod("large", node="t", cpu="100m", memory="5Gi"),
    )
    assert moves(made) == {"on-a": "t"}


def test_empty_node_that_is_headroom_is_not_said_to_be_emptied() -> None:
    """The last pods of it were said to be deleted, for as long as it stood there."""
    room = Headroom(sector="primary", cpu_milli=4000, memory_bytes=2**30)
    objects: list[Node | Pod] = [*nodes("a", "s"), on("s")]
    config = settings(headroom=(room,))
    made = planned(config, *objects)
    answer = explain(make_snapshot(*objects), config, made, nodes=["a"]).nodes[0]
    assert (answer.verdict, answer.code) == ("kept", "headroom")


def test_every_node_has_its_turn_though_one_plan_has_no_time_for_all() -> None:
    """Simulated moves take long on large clusters; nodes that never fit must not keep the rest."""
    names = [f"n{number:02}" for number in range(4 * TRIALS_MAX)]
    objects: list[Node | Pod] = [make_node("s", SPOT), on("s")]
    for name in names[:-1]:
        elsewhere = FrozenMap({"disk": "ssd"})
        objects += [make_node(name, ON_DEMAND), on(name, node_selector=elsewhere)]
    objects += [make_node(names[-1], ON_DEMAND), on(names[-1], cpu="1")]
    live = [o for o in objects if isinstance(o, Node)]
    cloud = make_cloud_of(live, make_fleet(ON_DEMAND, len(names)), make_fleet(SPOT, 1))
    plans = [
        plan(make_snapshot(*objects, cloud=cloud, at=NOW + timedelta(seconds=10 * i)), settings())
        for i in range(8)
    ]
    codes = [stays(made)[names[0]] for made in plans]
    assert set(codes) == {"no-spot-room"}
    assert any(begun(made) == [names[-1]] for made in plans)
    assert sum(code == "no-spot-room" for code in stays(plans[0]).values()) == TRIALS_MAX


def test_emptied_node_is_given_back_and_not_ended() -> None:
    """It stays schedulable: scale-in ends it if it stays empty."""
    made = made_of(under_way(), *nodes("", "s"), on("s"))
    assert told(made, TerminateInstance) == []
    assert told(made, UntaintNode) == ["a"]
    assert ("a", "drain-started", None) in annotations_set(made)


def under_way(seconds: float = 30) -> Node:
    """An on-demand node that is being emptied."""
    marks = drained("a", ON_DEMAND, seconds).annotations
    return make_node("a", ON_DEMAND, taints=(PREFERS_SPOT, RESCHEDULED), annotations=marks)


def test_drain_goes_on_towards_spot_nodes_alone() -> None:
    """A restart in the middle changes nothing; another on-demand node is no destination."""
    objects: list[Node | Pod] = [under_way(), *nodes("b", "s"), on("a"), on("b")]
    assert moves(made_of(*objects, on("s"))) == {"on-a": "s"}
    full = made_of(*objects, on("s", cpu="3800m"))
    assert (told(full, EvictPod), told(full, UntaintNode)) == ([], ["a"])


def test_drain_that_takes_too_long_is_given_up() -> None:
    """`pod_eviction_timeout`: a budget that never allows it must not hold the node for ever."""
    budget = PodDisruptionBudget(
        namespace="default", name="x", selector=selecting(), disruptions_allowed=0
    )
    made = made_of(under_way(300), *nodes("", "s"), on("a"), on("s"), budgets=(budget,))
    assert told(made, UntaintNode) == ["a"]
    assert any(key == "drain-failed" for _, key, _ in annotations_set(made))


def test_drain_is_given_up_when_it_is_switched_off() -> None:
    """Its taint would stay for ever."""
    made = made_of(under_way(), *nodes("", "s"), on("a"), on("s"), rules=None)
    assert (told(made, UntaintNode), told(made, EvictPod)) == (["a"], [])


def test_switched_off_nothing_moves_and_nothing_is_said() -> None:
    """Off is the default."""
    made = made_of(*nodes(), on("a"), on("s"), rules=None)
    assert begun(made) == []
    assert "a" not in stays(made)


def test_fleet_at_its_minimum_keeps_its_node_as_it_is() -> None:
    """The node could not go: its pods would move for nothing."""
    least = make_scene_fleet(
        name="on-demand", spot=False, min_capacity=1, utilization_threshold=0.0
    )
    made = made_of(*nodes(), on("a"), on("s"), fleets=(least, SPOT))
    assert stays(made)["a"] == "min-capacity"


def test_nodes_and_pods_are_counted_by_kind() -> None:
    """Whoever watches spot use reads it off these, as before."""
    daemon = make_pod("agent", node="a", owner="DaemonSet")
    made = made_of(*nodes("ab", "s"), on("a"), on("b"), on("s"), on("s", "more"), daemon)
    assert [(k.kind, k.nodes, k.pods) for k in made.nodes_by_kind] == [
        ("on-demand", 2, 2),
        ("spot", 1, 2),
    ]
    off = planned(make_settings(ON_DEMAND, SPOT), *nodes(), on("a"))
    assert off.nodes_by_kind == ()


@pytest.mark.parametrize("tolerates", [True, False])
def test_pod_that_would_land_on_another_on_demand_node_stays(*, tolerates: bool) -> None:
    """It tolerates the on-demand taint, and that node is emptier: it was moved again and again."""
    known = (Toleration(key="lifecycle", operator="Exists"),) if tolerates else ()
    web = on("a", "web", cpu="1", tolerations=known)
    kept_there = on("b", "kept", cpu="100m", annotations=FrozenMap({DO_NOT_DISRUPT: "true"}))
    made = made_of(*nodes("ab", "s"), web, kept_there, on("s", cpu="2"))
    assert moves(made) == ({} if tolerates else {"web": "s"})

"""Rolling updates: drifted nodes are replaced batch by batch."""

from dataclasses import replace
from datetime import UTC, datetime, time

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    ROLLING_UPDATE,
    UNNEEDED_SINCE,
    EvictPod,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.plan import FleetUpdate
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import (
    DisruptionBudget,
    MaintenanceWindow,
    RollingUpdate,
)
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, Headroom
from tests.builders import (
    HOME,
    NOW,
    ago,
    make_cloud,
    make_fleet,
    make_instance,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.interrupted_nodes import targets
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    on,
    told,
)
from tests.unit.planner.disruption.updated_fleet import (
    FLEET,
    NEW,
    OLD,
    TAINT,
    made_of,
    marked,
    node,
    remembered,
    state,
)
from tests.unit.planner.placed import drained

TIMER = {UNNEEDED_SINCE: rfc3339(ago(60))}


def test_first_batch_of_a_version_is_one_node() -> None:
    """A new image that does not work must cost one node, not a batch of them."""
    made = made_of(node("a"), node("b", 7200), full("a"), full("b"))
    assert marked(made) == {"b": "8/1"}
    assert targets(made) == []
    assert drained(made) == []
    update = FleetUpdate(
        fleet=FLEET.name,
        region=HOME,
        version=NEW,
        state="waiting",
        because="the next batch may begin",
        old=2,
        new=0,
    )
    assert made.updates == (update,)


def test_nothing_is_replaced_while_it_is_switched_off() -> None:
    """Drift alone is reported, and moves no pod."""
    nodes = [node("a"), node("b")]
    live = make_fleet(FLEET, 2, launch_template_id="lt-1", launch_template_version=NEW)
    instances = [make_instance(n, live, launch_template_version=OLD) for n in nodes]
    cloud = make_cloud(live, instances=instances, instances_known=True)
    made = plan(make_snapshot(*nodes, full("a"), full("b"), cloud=cloud), make_settings(FLEET))
    assert made.updates == ()
    assert marked(made) == {}


def test_node_of_a_batch_has_a_new_node_asked_for_once() -> None:
    """The fleet never has fewer Ready nodes than before; and no plan of the boot buys another."""
    objects: list[Node | Pod] = [node("a", mark=1, began=5), node("b"), full("a"), full("b")]
    made = made_of(*objects)
    assert targets(made) == [(2, 3)]
    assert drained(made) == []
    assert kept(made)["a"] == "replacement"
    assert state(made) == "canary"
    again = made_of(*objects, target=3)
    assert targets(again) == []
    assert drained(again) == []


def test_node_of_a_batch_is_drained_when_its_new_node_is_ready() -> None:
    """Its pods go to the new node, and never to one that is to be replaced itself."""
    objects: list[Node | Pod] = [node("a", mark=1), node("b"), on("a"), on("b")]
    waiting = made_of(*objects, node("c", 60, ready=False), new="c")
    assert drained(waiting) == []
    assert targets(waiting) == []
    made = made_of(*objects, node("c", 60), new="c")
    assert drained(made) == ["a"]
    assert told(made, EvictPod) == ["on-a"]
    assert {p.node for p in made.placements if p.moved_from} == {"c"}
    (taint,) = [a for a in made.actions if isinstance(a, TaintNode)]
    assert (taint.taint, taint.policy) == (TAINT, "rolling-update")
    assert "launch template version 8" in taint.because


def test_empty_node_that_is_headroom_has_its_turn() -> None:
    """Scale-in never ends it, so the update never came to its end."""
    room = Headroom(sector="primary", cpu_milli=4000, memory_bytes=2**30)
    objects: list[Node | Pod] = [node("a"), node("b", 9000), full("b")]
    made = made_of(*objects, new="b", settings={"headroom": (room,)})
    assert marked(made) == {"a": "8/1"}
    assert marked(made_of(*objects, new="b")) == {}


def test_node_of_a_batch_whose_pods_fit_nowhere_says_so() -> None:
    """It was shown as used, though the update waits for it."""
    fleet = make_scene_fleet(max_capacity=2)
    nodes = [node("a", mark=1, fleet=fleet), node("c", 60, fleet=fleet)]
    made = made_of(*nodes, full("a"), full("c"), new="c", fleet=fleet)
    (why,) = [each for each in made.kept if each.node == "a"]
    assert why.code == "no-destination"
    assert why.detail.startswith("rolling update to launch template version 8: ")
    assert "; its pods fit on no other node" in why.detail


@pytest.mark.parametrize("key", ["node.kubernetes.io/not-ready", "ebs.csi.aws.com/agent-not-ready"])
def test_new_node_with_a_startup_taint_is_waited_for(key: str) -> None:
    """It is Ready, and takes no pods yet: the service would have one node too few."""
    batch: list[Node | Pod] = [node("a", mark=1), node("b", mark=2), on("a", cpu="100m")]
    objects = [*batch, on("b", cpu="100m"), node("c", 60), node("p", 9000)]
    taint = Taint(key=key, value="", effect="NoSchedule")
    made = made_of(*objects, node("d", 60, taints=(taint,)), new="c d p")
    assert drained(made) == ["a"]
    assert targets(made) == [], "it counts as launching: no other is asked for"
    assert kept(made)["b"] == "replacement"
    assert drained(made_of(*objects, node("d", 60), new="c d p")) == ["a", "b"]


def test_second_node_of_a_batch_waits_for_the_second_new_node() -> None:
    """Two that left for one would be one node too few."""
    objects: list[Node | Pod] = [node("a", mark=1), node("b", mark=2), full("a"), full("b")]
    made = made_of(*objects, node("c", 60), node("p", 9000), new="c p", target=5)
    assert drained(made) == ["a"]
    assert kept(made)["b"] == "replacement"
    made = made_of(*objects, node("c", 60), node("d", 60), node("p", 9000), new="c d p")
    assert drained(made) == ["a", "b"]


def test_idle_new_node_waits_for_the_pods_of_its_batch() -> None:
    """It would be ended as idle and asked for again, every few seconds, until a pod may move."""
    idle = {UNNEEDED_SINCE: rfc3339(ago(9000))}
    new = node("c", 590, annotations=idle)
    settling = on("a", started_at=ago(60))
    made = made_of(node("a", mark=1), node("b"), settling, full("b"), new, new="c")
    assert kept(made)["a"] == "settling"
    assert kept(made)["c"] == "rolling-update"
    assert drained(made) == []
    assert [a for a in made.actions if isinstance(a, TerminateInstance)] == []


def test_idle_new_node_beyond_the_batch_goes() -> None:
    """A fleet must not stay larger for ever because it was updated."""
    idle = {UNNEEDED_SINCE: rfc3339(ago(9000))}
    made = made_of(
        node("b", 7200), full("b"), node("c", 7000, annotations=idle), new="b c", target=2
    )
    assert drained(made) == ["c"]


def test_node_whose_pods_still_settle_is_not_chosen_for_a_batch() -> None:
    """Its new node would be paid for while nothing may be moved there."""
    settling = on("b", started_at=ago(60))
    made = made_of(node("a"), node("b", 7200), full("a"), settling)
    assert marked(made) == {"a": "8/1"}


def test_drained_node_is_ended_with_its_part_of_the_target() -> None:
    """The target was raised for the node in its place."""
    gone = node("a", mark=1, taints=(TAINT,), annotations={DRAIN_STARTED: rfc3339(ago(30))})
    made = made_of(gone, node("b"), node("c", 60), full("b"), full("c"), new="c")
    ends = [x for x in made.actions if isinstance(x, TerminateInstance)]
    assert [(x.node, x.decrement, x.policy) for x in ends] == [("a", True, "rolling-update")]


@pytest.mark.parametrize(
    ("age", "found"), [(30, "canary"), (599, "canary"), (601, "waiting"), (7000, "waiting")]
)
def test_others_follow_when_the_first_new_node_was_watched(age: float, found: str) -> None:
    """A crash loop shows after minutes, not at once."""
    made = made_of(node("a"), node("b"), node("c", age), full("a"), full("b"), full("c"), new="c")
    assert state(made) == found
    assert sorted(marked(made)) == (["a", "b"] if found == "waiting" else [])


def test_next_batch_waits_for_the_pause() -> None:
    """Whoever watches the service needs a moment between two batches."""
    pods = [full(name) for name in ("a", "p", "c")]
    made = made_of(node("a"), node("p", 9000), node("c", 90), *pods, new="p c")
    assert state(made) == "paused"
    assert marked(made) == {}
    assert kept(made)["a"] == "rolling-update"


@pytest.mark.parametrize(("at", "found"), [("10:00", "closed"), ("22:30", "waiting")])
def test_batches_begin_within_maintenance_windows_only(at: str, found: str) -> None:
    """Whoever is on call chooses when nodes change."""
    window = MaintenanceWindow(starts=time(22), ends=time(4))
    moment = NOW.replace(hour=int(at[:2]), minute=int(at[3:]))
    nodes = [replace(node("a"), created_at=None), replace(node("b"), created_at=None)]
    made = made_of(*nodes, full("a"), full("b"), rules=RollingUpdate(windows=(window,)), at=moment)
    assert state(made) == found
    assert bool(marked(made)) == (found == "waiting")


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("2026-01-26T01:00:00", "closed"),  # a Monday, in the night from Sunday
        ("2026-01-26T23:00:00", "waiting"),
        ("2026-01-30T03:00:00", "waiting"),  # a Friday, in the night from Thursday
        ("2026-01-30T23:00:00", "closed"),
    ],
)
def test_overnight_window_is_of_the_day_on_which_it_starts(at: str, found: str) -> None:
    """Nobody is at work in the night to Monday, which `days: [mon, …]` seemed to leave out."""
    days = frozenset({1, 2, 3, 4})
    window = MaintenanceWindow(starts=time(22), ends=time(4), weekdays=days)
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    nodes = [replace(node("a"), created_at=None), replace(node("b"), created_at=None)]
    made = made_of(*nodes, full("a"), full("b"), rules=RollingUpdate(windows=(window,)), at=moment)
    assert state(made) == found


def test_begun_batch_is_finished_when_its_window_closes() -> None:
    """Half a batch would stand there until the next night."""
    window = MaintenanceWindow(starts=time(0), ends=time(0, 1))
    rules = RollingUpdate(windows=(window,))
    made = made_of(node("a", mark=1), node("c", 60), on("a"), new="c", rules=rules)
    assert drained(made) == ["a"]


def test_min_in_service_lets_nodes_go_before_their_new_node_has_come() -> None:
    """Teams with room to spare replace faster."""
    rules = RollingUpdate(batch_max=2, min_in_service=2)
    objects: list[Node | Pod] = [
        node("p", 9000),
        node("a", mark=1, began=5),
        node("b", mark=2, began=5),
    ]
    made = made_of(*objects, on("a"), on("b"), on("p"), new="p", rules=rules)
    assert drained(made) == ["a"]
    assert targets(made) == [(3, 5)]


@pytest.mark.parametrize(("minimum", "occupied"), [(0, True), (3, True), (3, False)])
def test_node_that_min_in_service_lets_go_is_replaced_once(minimum: int, occupied: bool) -> None:
    """The batch had asked for its new nodes already: the second ones were never used."""
    fleet = make_scene_fleet(min_capacity=minimum)
    rules = RollingUpdate(batch_max=2, min_in_service=1)
    nodes = [node("p", 9000, fleet=fleet)]
    nodes += [node(name, mark=n, began=5, fleet=fleet) for n, name in ((1, "a"), (2, "b"))]
    pods = [on("a", cpu="3"), on("b", cpu="3")] if occupied else []
    made = made_of(*nodes, *pods, on("p", cpu="3"), new="p", rules=rules, fleet=fleet)
    assert drained(made) == []
    assert targets(made) == [(3, 5)]
    assert kept(made)["a"] == "replacement"


def test_fleet_at_its_maximum_says_what_to_do() -> None:
    """It would stand still without a word."""
    fleet = make_scene_fleet(max_capacity=2)
    nodes = [node("a", fleet=fleet), node("b", fleet=fleet)]
    made = made_of(*nodes, full("a"), full("b"), fleet=fleet)
    assert marked(made) == {}
    assert kept(made)["a"] == "max-capacity"


def test_fleet_of_a_fixed_size_is_not_updated_and_says_why() -> None:
    """Its nodes were chosen in turn, and rested again and again as if their drains had failed."""
    fleet = make_scene_fleet(min_capacity=2, max_capacity=2)
    rules = RollingUpdate(min_in_service=1)
    nodes = [node("a", fleet=fleet), node("b", fleet=fleet)]
    made = made_of(*nodes, full("a"), full("b"), fleet=fleet, rules=rules)
    assert marked(made) == {}
    (why,) = {each.detail for each in made.kept if each.node == "a"}
    assert "max_capacity of 2" in why
    assert "min_capacity of 2" in why
    chosen = node("a", fleet=fleet, mark=1)
    made = made_of(chosen, nodes[1], full("a"), full("b"), fleet=fleet, rules=rules)
    assert kept(made)["a"] == "max-capacity"


def test_protected_nodes_are_passed_over() -> None:
    """A node that may not go must not hold up all others."""
    kept_node = node("a", 9000, annotations={"fleet-reconciler.io/do-not-disrupt": "true"})
    made = made_of(kept_node, node("b"), full("a"), full("b"))
    assert marked(made) == {"b": "8/1"}


def test_disruption_budget_holds_the_update() -> None:
    """`drifted` is its reason."""
    budget = DisruptionBudget(nodes=0, reasons=frozenset({"drifted"}))
    made = made_of(
        node("a"), node("b"), full("a"), full("b"), settings={"disruption_budgets": (budget,)}
    )
    assert marked(made) == {}


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(
    ("fleet", "budgets", "code"),
    [
        (FLEET, (DisruptionBudget(nodes=0),), "disruption-budget"),
        (replace(FLEET, max_capacity=3), (), "max-capacity"),
    ],
    ids=["budget", "maximum"],
)
def test_update_that_can_begin_no_batch_says_what_keeps_its_nodes(
    fleet: FleetSettings, budgets: tuple[DisruptionBudget, ...], code: str, timed: bool
) -> None:
    """Each node said that its pods fit nowhere else, and the status that all was well, for good."""
    nodes = [node(name, fleet=fleet, annotations=TIMER if timed else {}) for name in "abc"]
    pods = [on(name, f"{name}-{n}", cpu=cpu) for name in "abc" for n, cpu in enumerate(("2", "1"))]
    options = {"consolidation": True, "disruption_budgets": budgets}
    made = made_of(*nodes, *pods, fleet=fleet, settings=options)
    assert marked(made) == {}
    assert kept(made) == dict.fromkeys("abc", code)
    (update,) = made.updates
    assert (update.state, update.because) == (
        "waiting",
        f"none of 3 nodes can be emptied: {code} 3",
    )


@pytest.mark.parametrize("timed", [False, True])
def test_what_a_halted_update_says_is_not_hidden_by_what_use_says(timed: bool) -> None:
    """Whoever asked why a node was still old read that its pods fit nowhere else."""
    nodes = [node(name, annotations=TIMER if timed else {}) for name in "abc"]
    pods = [on(name, f"{name}-{n}", cpu=cpu) for name in "abc" for n, cpu in enumerate(("2", "1"))]
    halt = remembered(halted_version=NEW, halted_because="it failed")
    made = made_of(*nodes, *pods, settings={"consolidation": True}, fleet_states=halt)
    assert kept(made) == dict.fromkeys("abc", "rolling-update-halted")


def test_empty_node_waits_for_its_idle_time_as_ever() -> None:
    """Nothing needs a node in its place."""
    made = made_of(node("a"), node("b"), full("b"))
    assert marked(made) == {"b": "8/1"}
    least = make_scene_fleet(min_capacity=2)
    nodes = [node("a", fleet=least), node("b", 1800, fleet=least)]
    made = made_of(*nodes, full("b"), fleet=least)
    assert marked(made) == {"a": "8/1"}
    nodes = [node("a", fleet=least, mark=1), node("b", fleet=least)]
    waits = made_of(*nodes, full("b"), fleet=least, target=3)
    assert drained(waits) == []
    assert kept(waits)["a"] == "replacement"
    goes = made_of(*nodes, node("c", 60, fleet=least), full("b"), new="c", fleet=least)
    assert drained(goes) == ["a"]


def test_node_that_cannot_be_emptied_leaves_its_batch() -> None:
    """The others would wait for it without end."""
    blocked = on("a", annotations={"fleet-reconciler.io/do-not-disrupt": "true"})
    objects: list[Node | Pod] = [node("a", mark=1, began=2000), node("b"), full("b")]
    stays = made_of(*objects, node("c", 600), blocked, new="c")
    assert marked(stays) == {}
    made = made_of(*objects, node("c", 1200), blocked, new="c")
    assert marked(made) == {"a": None}
    assert drained(made) == []
    assert ("a", "drain-failed") in {(name, key) for name, key, _ in annotations_set(made)}


@pytest.mark.parametrize(
    "text", ["8", "8/x/1", f"8/{rfc3339(NOW)}/0", "8//1", "8/2026/a/b", f"8/{rfc3339(NOW)}/1/x"]
)
def test_mark_that_cannot_be_read_is_taken_off(text: str) -> None:
    """A person may have edited it."""
    made = made_of(node("a", annotations={ROLLING_UPDATE: text}), full("a"))
    assert ("a", "rolling-update", None) in annotations_set(made)
    assert drained(made) == []
    assert targets(made) == []

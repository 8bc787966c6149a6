"""Rolling updates buy no nodes that the pods of old nodes could not use, again and again."""

from dataclasses import replace

import pytest

from reconciler.model.actions import DRAIN_FAILED, DRAIN_STARTED, REPLACEMENT_ASKED, UntaintNode
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from reconciler.planner.settings import Headroom
from tests.builders import ago
from tests.unit.planner.disruption.interrupted_nodes import targets
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    moves,
    on,
    told,
)
from tests.unit.planner.disruption.updated_fleet import (
    NEW,
    OLD,
    RULES,
    TAINT,
    made_of,
    marked,
    node,
    remembered,
    state,
)
from tests.unit.planner.placed import drained

ZONES = ("us-west-2a", "us-west-2b")
FLEET = replace(make_scene_fleet(), zones=ZONES)
DAY = 86_400.0
PROVEN = remembered(canary_version=NEW, canary_since=ago(DAY), canary_proven=True)


def pinned(name: str) -> Pod:
    """A pod that has to stay in the first zone, as one with a volume there."""
    return on(name, cpu="3", node_selector={"topology.kubernetes.io/zone": ZONES[0]})


def asked(count: int, seconds: float = 3600, by: str = f"/{NEW}") -> dict[str, str]:
    """That new nodes were asked for so often, by the update to this version."""
    return {REPLACEMENT_ASKED: f"{rfc3339(ago(seconds))}/{count}{by}"}


def in_vain(count: int = 1, seconds: float = 3600) -> dict[str, str]:
    """The same, and that its drain failed five minutes after the last one was asked for."""
    return {DRAIN_FAILED: f"{rfc3339(ago(seconds - 300))}/1", **asked(count, seconds)}


def begun(old: Node) -> FrozenMap[str, str]:
    """Its annotations when its drain has begun."""
    return FrozenMap({**old.annotations, DRAIN_STARTED: rfc3339(ago(30))})


def test_node_whose_pods_fit_on_no_new_node_is_in_no_batch() -> None:
    """A node was bought for it every quarter of an hour, stood idle and was ended."""
    made = made_of(node("a", 9000), on("a", cpu="8"), node("b"), full("b"))
    assert marked(made) == {"b": "8/1"}
    assert kept(made)["a"] == "no-destination"


def test_nodes_that_may_go_whichever_zone_a_new_one_comes_up_in_go_first() -> None:
    """One node whose pods have their volumes in another zone held up all others."""
    nodes = [node("a", 9000, fleet=FLEET), node("b", fleet=FLEET)]
    assert marked(made_of(*nodes, pinned("a"), full("b"), fleet=FLEET)) == {"b": "8/1"}
    assert marked(made_of(nodes[0], pinned("a"), fleet=FLEET)) == {"a": "8/1"}


def test_fleet_of_which_no_zone_is_known_may_launch_where_its_nodes_are() -> None:
    """Its pods with volumes would keep their old nodes for good."""
    assert marked(made_of(node("a", zone=ZONES[0]), pinned("a"))) == {"a": "8/1"}


@pytest.mark.parametrize(
    ("count", "seconds", "tries"), [(1, 3600, 1), (2, 3600, 0), (2, DAY + 1, 1)]
)
def test_new_nodes_that_came_in_vain_are_asked_for_twice_a_day(
    count: int, seconds: float, tries: int
) -> None:
    """They come up in the wrong zone, or with a taint that no config knows."""
    old = node("a", annotations=asked(count, seconds))
    made = made_of(old, full("a"))
    assert len(marked(made)) == tries
    assert (kept(made)["a"] == "no-destination") is (tries == 0)


@pytest.mark.parametrize("by", ["", f"/{OLD}"])
def test_what_others_asked_for_in_vain_holds_up_no_update(by: str) -> None:
    """After two bad images the good one was not rolled out for a day."""
    made = made_of(node("a", annotations=asked(2, by=by)), full("a"))
    assert marked(made) == {"a": "8/1"}
    batch = node("a", mark=1, began=5, annotations=asked(2, by=by))
    made = made_of(batch, node("p", 9000), full("a"), full("p"), new="p")
    assert ("a", "replacement-asked", f"{rfc3339(ago(0))}/1/{NEW}") in annotations_set(made)


def test_purchase_is_noted_once_on_each_node_of_the_batch() -> None:
    """Nothing else tells later how often new nodes came for them."""
    batch = [node("a", mark=1, began=5), node("b", mark=2, began=5, annotations=asked(1))]
    made = made_of(*batch, node("p", 9000), full("a"), full("b"), full("p"), new="p")
    assert targets(made) == [(3, 5)]
    noted = {(n, v and v[-3:]) for n, key, v in annotations_set(made) if key == "replacement-asked"}
    assert noted == {("a", "1/8"), ("b", "2/8")}
    again: list[Node | Pod] = [node("a", mark=1, annotations=asked(1, 300)), full("a")]
    assert targets(made_of(*again)) == [(1, 2)]
    assert "replacement-asked" not in {key for _, key, _ in annotations_set(made_of(*again))}


@pytest.mark.parametrize("failed", [asked(1), {DRAIN_FAILED: f"{rfc3339(ago(3600))}/1"}])
def test_node_that_failed_comes_after_all_others(failed: dict[str, str]) -> None:
    """With three such nodes and batches of one the rest of the fleet was never updated."""
    rules = replace(RULES, batch_max=1)
    nodes = [node("a", 9000, annotations=failed), node("b")]
    assert marked(made_of(*nodes, full("a"), full("b"), rules=rules)) == {"b": "8/1"}


def test_every_node_of_a_large_fleet_has_its_turn() -> None:
    """Nodes that cannot go would take all the time that one plan has."""
    stuck = [node(f"n{number}", 9000) for number in range(30)]
    pods = [*(on(each.name, cpu="8") for each in stuck), full("b")]
    turns = [made_of(*stuck, node("b"), *pods, at=ago(-10.0 * turn)) for turn in range(30)]
    assert {"b": "8/1"} in [marked(made) for made in turns]


def test_pods_move_to_old_nodes_where_no_new_one_can_come_first() -> None:
    """A fleet at its maximum without room elsewhere was never updated, whatever it could spare."""
    fleet = make_scene_fleet(max_capacity=2)
    rules = replace(RULES, min_in_service=1)
    old, other = node("a", 9000, fleet=fleet), node("b", fleet=fleet)
    pods = [on("a", cpu="1"), on("b", cpu="1")]
    assert marked(made_of(old, other, *pods, fleet=fleet, rules=rules)) == {"a": "8/1"}
    batch = node("a", 9000, fleet=fleet, mark=1)
    made = made_of(batch, other, *pods, fleet=fleet, rules=rules)
    assert drained(made) == ["a"]
    assert moves(made) == {"on-a": "b"}
    draining = replace(batch, taints=(TAINT,), annotations=begun(batch))
    made = made_of(draining, other, *pods, fleet=fleet, rules=rules)
    assert told(made, UntaintNode) == [], "its drain goes on"
    fewer = make_scene_fleet(max_capacity=3)
    made = made_of(draining, other, *pods, fleet=fewer, rules=rules)
    assert told(made, UntaintNode) == [], "also when a third node has gone, and one may come"
    assert drained(made_of(batch, other, *pods, rules=rules)) == [], "a new node comes first"


def test_headroom_keeps_no_node_at_the_maximum_that_has_no_pods() -> None:
    """It lies on that very node: it was looked for elsewhere, and the node never replaced."""
    fleet = make_scene_fleet(max_capacity=2)
    rules = replace(RULES, min_in_service=1)
    piece = {"headroom": (Headroom(sector="primary", cpu_milli=3000, memory_bytes=2**30),)}
    others: list[Node | Pod] = [node("b", fleet=fleet), on("b", cpu="2")]
    old = node("a", fleet=fleet)
    made = made_of(old, *others, fleet=fleet, rules=rules, settings=piece)
    assert marked(made) == {"a": "8/1"}
    batch = node("a", fleet=fleet, mark=1)
    made = made_of(batch, *others, fleet=fleet, rules=rules, settings=piece)
    assert drained(made) == ["a"]


def test_headroom_that_kube_scheduler_would_take_keeps_no_node_of_a_batch() -> None:
    """It does not know about headroom: the update rested for good, its new node beside it.

    One of the pods comes to the larger node, which has the larger share of its room free then.
    """
    large = make_scene_fleet(size="large", cpu=8, memory="32Gi", price="0.2")
    piece = {"headroom": (Headroom(sector="primary", cpu_milli=4000, memory_bytes=2**30),)}
    nodes = [node("a", mark=1), node("new", 300), node("large", fleet=large)]
    pods = [on("a", "one", "1500m"), on("a", "two", "1500m"), on("large", cpu="3")]
    made = made_of(*nodes, *pods, new="new large", beside=(large,), settings=piece)
    assert (drained(made), moves(made)) == (["a"], {"one": "new", "two": "new"})


def test_node_that_may_not_wait_for_a_new_one_says_what_to_change() -> None:
    """Whoever set min_in_service for it would not know why nothing happens."""
    fleet = make_scene_fleet(max_capacity=2)
    nodes = [node("a", fleet=fleet), node("b", fleet=fleet)]
    rules = replace(RULES, min_in_service=1)
    made = made_of(*nodes, full("a"), full("b"), fleet=fleet, rules=rules)
    assert marked(made) == {}
    (why,) = [each for each in made.kept if each.node == "a" and each.code == "no-destination"]
    assert "max_capacity of 2" in why.detail


def test_room_that_is_kept_free_holds_up_no_update() -> None:
    """With a new node kube-scheduler leaves that room alone: without, it would fill it first."""
    piece = Headroom(sector="primary", cpu_milli=2000, memory_bytes=2**30)
    new = [node("p", 9000), node("c", 8000), node("a", 9500)]
    pods = [on("a", cpu="900m"), on("p", cpu="1500m"), on("c", cpu="2800m")]
    made = made_of(*new, *pods, new="p c", settings={"headroom": (piece,)})
    assert marked(made) == {"a": "8/1"}


@pytest.mark.parametrize(
    ("seconds", "state"), [(3600, "resting"), (3899, "resting"), (3900, "waiting")]
)
def test_update_rests_for_an_hour_after_two_nodes_that_came_in_vain(
    seconds: float, state: str
) -> None:
    """A webhook that refuses evictions made it buy two nodes for each node of the fleet."""
    nodes = [node(name, annotations=in_vain(seconds=seconds)) for name in "ab"]
    made = made_of(*nodes, node("c"), *map(full, "abc"))
    (update,) = made.updates
    assert update.state == state
    assert (marked(made) == {}) is (state == "resting")
    if state == "resting":
        until = rfc3339(ago(seconds - 300 - 3600))
        assert update.because == (
            f"it rests until {until}: 2 new nodes in a row were not used, as a, b could not be "
            "emptied"
        )
        (why,) = [each for each in made.kept if each.node == "c"]
        assert update.because in why.detail
        assert why.until is not None
        assert rfc3339(why.until) == until


def test_each_further_node_in_vain_doubles_the_rest() -> None:
    """One that is fixed soon is noticed soon, one that is not costs little."""
    nodes = [node(name, annotations=in_vain(seconds=7000)) for name in "abc"]
    assert state(made_of(*nodes, node("d"), *map(full, "abcd"))) == "resting"
    assert state(made_of(*nodes[:2], node("d"), *map(full, "abd"))) == "waiting"


def test_new_node_in_use_ends_the_row_of_those_in_vain() -> None:
    """Two nodes of a hundred whose pods may not be evicted must not hold up the others."""
    nodes = [node(name, annotations=in_vain()) for name in "ab"]
    made = made_of(*nodes, node("c"), node("n", 1000), *map(full, "abcn"), new="n")
    assert marked(made) == {"c": "8/1", "a": "8/2"}
    made = made_of(*nodes, node("c"), node("n", 1000), *map(full, "abc"), new="n")
    assert marked(made) == {}, "the new node is not used"


def test_update_rests_while_no_node_may_be_asked_for_again() -> None:
    """The last node of a fleet was tried twice; then nothing said why a day passed."""
    nodes: list[Node | Pod] = [node("a", annotations=in_vain(2, 10_000)), node("b")]
    made = made_of(*nodes, full("a"), on("b", owner="Job"))
    (update,) = made.updates
    assert update.state == "resting"
    assert rfc3339(ago(10_000 - DAY)) in update.because


def test_resumed_update_forgets_what_came_in_vain() -> None:
    """Whoever has fixed the webhook need not wait."""
    nodes = [node(name, annotations=in_vain()) for name in "ab"]
    made = made_of(*nodes, *map(full, "ab"), resumed_updates=(FLEET.name,))
    gone = {(n, key) for n, key, value in annotations_set(made) if value is None}
    assert gone == {(n, key) for n in "ab" for key in ("replacement-asked", "drain-failed")}


def test_resume_ends_the_rest_of_an_update_of_which_no_other_node_can_be_replaced() -> None:
    """The log said that its rest was over, the annotation was gone, and it rested for a day."""
    nodes = [node("a", DAY, annotations=in_vain(2, 10_800)), node("b", DAY), node("c", 40_000)]
    objects: list[Node | Pod] = [*nodes, full("a"), full("c"), on("b", owner="Job")]
    assert state(made_of(*objects, new="c", fleet_states=PROVEN)) == "resting"
    resumed = (FLEET.name,)
    made = made_of(*objects, new="c", fleet_states=PROVEN, resumed_updates=resumed)
    assert [(resume.done, resume.because) for resume in made.resumes] == [
        (True, "its rest is over")
    ]
    gone = {(name, key) for name, key, value in annotations_set(made) if value is None}
    assert gone == {("a", "replacement-asked"), ("a", "drain-failed")}
    later = [replace(nodes[0], annotations=FrozenMap({})), *objects[1:]]
    assert marked(made_of(*later, new="c", fleet_states=PROVEN)) == {"a": "8/1"}

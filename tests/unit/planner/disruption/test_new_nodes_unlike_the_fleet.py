"""Rolling updates whose new nodes do not count as new: no more are bought than the batch has."""

from dataclasses import replace

import pytest

from reconciler.model.actions import REPLACEMENT_ASKED, ROLLING_UPDATE, UNNEEDED_SINCE
from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    kept_proof,
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
)
from tests.unit.planner.disruption.updated_fleet import (
    FLEET,
    NEW,
    OLD,
    RULES,
    made_of,
    marked,
    node,
    state,
)
from tests.unit.planner.placed import drained

GROUP = make_scene_fleet(provider="asg")


def of_configuration(*objects: Node | Pod, types: dict[str, str], target: int) -> Plan:
    """The plan of a group with a launch configuration that launches m6i.xlarge now."""
    live = make_fleet(GROUP, target, instance_types=("m6i.xlarge",), min_size=0, max_size=20)
    nodes = [each for each in objects if isinstance(each, Node)]
    found = [replace(make_instance(n, live), instance_type=types[n.name]) for n in nodes]
    cloud = make_cloud(live, instances=found)
    settings = make_settings(GROUP, rolling_update=RULES)
    return plan(make_snapshot(*objects, cloud=cloud, **kept_proof(live)), settings)


def test_group_with_a_launch_configuration_is_not_updated() -> None:
    """Its nodes have no version, so none counted as new, and each new one was followed by one."""
    objects: list[Node | Pod] = [node("a", 9000, fleet=GROUP), node("b", 9000, fleet=GROUP)]
    types = {"a": "m5.xlarge", "b": "m5.xlarge"}
    made = of_configuration(*objects, full("a"), full("b"), types=types, target=2)
    assert (made.updates, marked(made), targets(made)) == ((), {}, [])
    assert [(each.reason, each.nodes) for each in made.drifted] == [("instance-type", 2)]


def test_batch_of_a_group_with_a_launch_configuration_is_given_up() -> None:
    """Earlier versions of the program began one, and would drain its node at once some day."""
    mark = {ROLLING_UPDATE: f"/{rfc3339(ago(900))}/1"}
    old = [node("a", 9000, fleet=GROUP, annotations=mark), node("b", 9000, fleet=GROUP)]
    joined = [node("c", 600, fleet=GROUP), node("d", 60, fleet=GROUP)]
    types = {"a": "m5.xlarge", "b": "m5.xlarge", "c": "m6i.xlarge", "d": "m6i.xlarge"}
    made = of_configuration(*old, *joined, full("a"), full("b"), types=types, target=4)
    assert (marked(made), targets(made), drained(made)) == ({"a": None}, [], [])


def of_batch(*joined: Node, asked: float = 0, began: float = 600) -> Plan:
    """The plan of a batch of one node for which nodes of the earlier version joined."""
    noted = {REPLACEMENT_ASKED: f"{rfc3339(ago(asked))}/1/{NEW}"} if asked else {}
    old = node("a", 9000, mark=1, began=began, annotations=noted)
    return made_of(old, full("a"), node("b", 9000), full("b"), *joined)


@pytest.mark.parametrize("count", [1, 5])
def test_batch_buys_no_further_node_when_the_first_does_not_count_as_new(count: int) -> None:
    """One more was bought after each that joined, without a bound."""
    made = of_batch(*(node(f"c{number}", 60 + number) for number in range(count)))
    assert (targets(made), drained(made), marked(made)) == ([], [], {})
    (update,) = made.updates
    assert "not counted as new: " in update.because
    (why,) = [each for each in made.kept if each.node == "a"]
    assert "(c0" in why.detail


def test_batch_buys_its_node_though_one_that_was_launched_before_joins_late() -> None:
    """A node of the earlier version may be on its way when the version changes."""
    live = make_fleet(FLEET, 3, launch_template_id="lt-1", launch_template_version=NEW)
    batch, late = node("a", 9000, mark=1), node("c", 500)
    nodes = [batch, node("b", 9000), late]
    launched = [make_instance(n, live, launch_template_version=OLD) for n in nodes]
    launched[2] = replace(launched[2], launched_at=ago(700))
    cloud = make_cloud(live, instances=launched)
    pods = [full(each.name) for each in nodes]
    snapshot = make_snapshot(*nodes, *pods, cloud=cloud, **kept_proof(live))
    assert targets(plan(snapshot, make_settings(FLEET, rolling_update=RULES))) == [(3, 4)]


def test_idle_node_that_does_not_count_as_new_stays_as_long_as_its_batch() -> None:
    """It was ended as idle, and another was bought in the same batch."""
    idle = {UNNEEDED_SINCE: rfc3339(ago(9000))}
    made = of_batch(node("c", 590, annotations=idle))
    assert (kept(made)["c"], drained(made)) == ("rolling-update", [])


def test_node_leaves_its_batch_when_what_joined_does_not_count_as_new() -> None:
    """It waited without an end, and no other method might replace anything meanwhile."""
    assert marked(of_batch(node("c", 880), asked=1000, began=1100)) == {}
    made = of_batch(node("c", 920), asked=1000, began=1100)
    assert (marked(made), drained(made)) == ({"a": None}, [])
    assert ("a", "drain-failed") in {(name, key) for name, key, _ in annotations_set(made)}


def test_update_rests_after_two_batches_whose_nodes_did_not_count_as_new() -> None:
    """A node was bought for each old one in turn."""
    made = of_batch(node("c", 920), asked=1000, began=1100)
    failed = {key: value for name, key, value in annotations_set(made) if name == "a" and value}
    found = {f"fleet-reconciler.io/{key}": str(value) for key, value in failed.items()}
    found[REPLACEMENT_ASKED] = f"{rfc3339(ago(1000))}/1/{NEW}"
    old = [node(name, 9000, annotations=found) for name in "ab"]
    made = made_of(*old, node("c", 920), node("d", 9000), *map(full, "abd"))
    assert (state(made), marked(made), targets(made)) == ("resting", {}, [])


def test_second_node_of_a_batch_waits_if_only_the_first_new_node_counts() -> None:
    """The fleet would have fewer nodes that take pods than before."""
    batch = [node("a", 9000, mark=1), node("b", 9000, mark=2)]
    pods = [full("a"), on("b", cpu="2500m")]
    made = made_of(*batch, *pods, node("c", 300), node("d", 200), node("p", 8000), new="c p")
    assert (drained(made), targets(made)) == (["a"], [])
    assert kept(made)["b"] == "replacement"

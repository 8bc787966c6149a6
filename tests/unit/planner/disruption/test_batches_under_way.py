"""Batches of a rolling update that have to wait, or that something else comes in between of."""

from reconciler.model.actions import EvictPod
from tests.unit.planner.disruption.updated_fleet import drained, made_of, marked, node
from tests.unit.planner.scale_in.scene import annotations_set, full, told


def test_node_that_drains_at_last_stays_in_its_batch() -> None:
    """After a pause of the program it rested while its drain began, and the next batch with it."""
    objects = [node("a", 9000, mark=1, began=1800), node("c", 1500), node("b", 8000)]
    made = made_of(*objects, full("a"), full("b"), new="c")
    assert drained(made) == ["a"]
    assert told(made, EvictPod) == ["full-a"]
    assert marked(made) == {}
    assert {key for name, key, _ in annotations_set(made) if name == "a"} == {"drain-started"}

"""Nodes that EC2 takes back, for tests of what is done with them."""

from typing import Any

from reconciler.model.actions import DRAIN_STARTED, DRAINING_TAINT, INTERRUPTION, SetCapacity
from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from tests.builders import ago, make_node
from tests.unit.planner.disruption.scale_in.scene import make_scene_fleet

FLEET = make_scene_fleet()
TAINT = Taint(key=DRAINING_TAINT, value="interruption", effect="NoSchedule")


def noticed(name: str, left_seconds: float = 110, **changed: Any) -> Node:
    """A node that EC2 takes back so many seconds from now."""
    text = f"terminate/{rfc3339(ago(-left_seconds))}"
    annotations = {INTERRUPTION: text, **changed.pop("annotations", {})}
    return make_node(
        name, changed.pop("fleet", FLEET), annotations=FrozenMap(annotations), **changed
    )


def begun(name: str, left_seconds: float = 60, **changed: Any) -> Node:
    """The same some time after its drain began."""
    own = {DRAIN_STARTED: rfc3339(ago(30)), **changed.pop("annotations", {})}
    return noticed(name, left_seconds, annotations=own, taints=(TAINT,), **changed)


def targets(made: Plan) -> list[tuple[int, int]]:
    """Every change of a target."""
    return [(a.from_capacity, a.to_capacity) for a in made.actions if isinstance(a, SetCapacity)]

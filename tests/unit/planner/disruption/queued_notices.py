"""Snapshots with notices of the interruption queue, and what plans say of them."""

from dataclasses import replace
from typing import Any

from reconciler.model.actions import INTERRUPTION, AnnotateNode
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.notices import MessageId, Notice
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import rfc3339
from tests.builders import ago, make_cloud, make_fleet, make_instance, make_node, make_snapshot
from tests.unit.planner.disruption.interrupted_nodes import FLEET


def spot(name: str, left_seconds: float = 110, message: str = "m-1", **changed: Any) -> Notice:
    """The notice that EC2 takes a node's instance back so many seconds from now."""
    stated: dict[str, Any] = {"kind": "spot-interruption", "action": "terminate"}
    stated |= {"instance": InstanceId(f"i-{name}"), "at": ago(-left_seconds)}
    return Notice(message=MessageId(message), **{**stated, **changed})


def recommended(left_seconds: float) -> Notice:
    """EC2 recommends, or has recommended, to leave the instance of node a."""
    return spot("a", left_seconds, kind="rebalance", action="")


def change(left_seconds: float, message: str = "m-1", **changed: Any) -> Notice:
    """EC2 announces, or takes back, a change of the instance of node a."""
    stated: dict[str, Any] = {"kind": "scheduled-change", "action": "AWS_EC2_INSTANCE_STOP"}
    return spot("a", left_seconds, message, **{**stated, **changed})


def withdrawn(left_seconds: float, message: str = "m-2") -> Notice:
    """EC2 takes a change of the instance of node a back."""
    return change(left_seconds, message, kind="change-withdrawn")


def changed_node(left_seconds: float) -> Node:
    """Node a, which carries the announcement of a change."""
    text = f"scheduled-change/{rfc3339(ago(-left_seconds))}"
    return make_node("a", FLEET, annotations=FrozenMap({INTERRUPTION: text}))


def seen(*objects: Node | Pod, notices: tuple[Notice, ...], **changed: Any) -> Snapshot:
    """A snapshot with these notices, in which EC2 shows an instance for each node."""
    nodes = [each for each in objects if isinstance(each, Node)]
    live = make_fleet(FLEET, len(nodes))
    states = changed.pop("states", {})
    instances = [make_instance(n, live, state=states.get(n.name, "running")) for n in nodes]
    cloud = replace(make_cloud(live), instances=tuple(instances), instances_known=True)
    return replace(
        make_snapshot(*objects, cloud=changed.pop("cloud", cloud), **changed),
        notices=tuple(sorted(notices)),
    )


def results(made: Plan) -> list[str]:
    """What became of each notice."""
    return [notice.result for notice in made.notices]


def written(made: Plan) -> dict[str, str | None]:
    """The notices that the plan writes onto nodes."""
    return {
        a.node: a.value
        for a in made.actions
        if isinstance(a, AnnotateNode) and a.key == INTERRUPTION
    }

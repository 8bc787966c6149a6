"""The state that a plan leads to."""

from dataclasses import replace

from reconciler.model.actions import (
    AnnotateNode,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot


def asked_for(snapshot: Snapshot, made: Plan) -> Snapshot:
    """Right after every call was accepted: targets as planned, nothing joined yet, no pod bound."""
    if snapshot.cloud is None:
        raise ValueError("without EC2's answers nobody sees targets")
    targets = {(f.fleet, f.region): f.target for f in made.fleets}
    ended = {a.instance for a in made.actions if isinstance(a, TerminateInstance)}
    cloud = replace(
        snapshot.cloud,
        fleets=tuple(
            replace(f, target_capacity=targets.get((f.name, f.region), f.target_capacity))
            for f in snapshot.cloud.fleets
        ),
        instances=tuple(
            replace(i, state="shutting-down") if i.id in ended else i
            for i in snapshot.cloud.instances
        ),
    )
    nodes = tuple(_acted_on(node, made) for node in snapshot.cluster.nodes)
    return replace(snapshot, cluster=replace(snapshot.cluster, nodes=nodes), cloud=cloud)


def _acted_on(node: Node, made: Plan) -> Node:
    """The node with the taints and annotations that the plan sets on it."""
    for action in made.actions:
        match action:
            case TaintNode() if action.node == node.name:
                node = replace(node, taints=(*node.taints, action.taint))
            case UntaintNode() if action.node == node.name:
                kept = tuple(t for t in node.taints if t.key != action.key)
                node = replace(node, taints=kept)
            case AnnotateNode() if action.node == node.name:
                rest = {k: v for k, v in node.annotations.items() if k != action.key}
                if action.value is not None:
                    rest[action.key] = action.value
                node = replace(node, annotations=FrozenMap(rest))
            case _:
                pass
    return node

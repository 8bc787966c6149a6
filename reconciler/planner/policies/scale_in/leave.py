"""Nodes on their way out: end them when they are empty, give them back when they are used."""

from reconciler.model.actions import (
    DRAINING_TAINT,
    UNNEEDED_SINCE,
    AnnotateNode,
    DeleteNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetId, FleetKey
from reconciler.planner.cycle import Cycle
from reconciler.planner.idleness import counted
from reconciler.planner.inventory import is_draining
from reconciler.planner.policies.scale_in.empty import protected


def finish_leaving(cycle: Cycle) -> None:
    """Delete Node objects of ended instances; end empty draining nodes; untaint used ones."""
    taken_back = {a.node for a in cycle.actions if isinstance(a, UntaintNode)}
    for node in cycle.nodes.values():
        key = cycle.inventory.fleet_of_node.get(node.name)
        if key is None:
            continue
        if node.name in cycle.inventory.leaving:
            _delete_if_terminated(cycle, node)
        elif is_draining(node) and node.name not in taken_back and _reason(node) == "scale-in":
            _finish(cycle, node, key)


def _reason(node: Node) -> str:
    return next(taint.value for taint in node.taints if taint.key == DRAINING_TAINT)


def _delete_if_terminated(cycle: Cycle, node: Node) -> None:
    if cycle.inventory.instance_of_node[node.name].state == "terminated" and not node.deleting:
        cycle.actions.append(
            DeleteNode(node=node.name, policy="scale-in", because="its instance is terminated")
        )


def _finish(cycle: Cycle, node: Node, key: FleetKey) -> None:
    status = cycle.statuses[key]
    if counted(cycle.pods_on.get(node.name, ())) or protected(node):
        _give_back(cycle, node, "it is used again")
    elif not _already_lowered(cycle, key) and cycle.targets[key] - 1 < status.min:
        _give_back(cycle, node, f"the fleet is at its min_capacity of {status.min}")
    elif node.instance_id is not None and status.state != "missing":
        lowered = _already_lowered(cycle, key)
        if not lowered:
            cycle.targets[key] -= 1
        cycle.actions.append(
            TerminateInstance(
                instance=node.instance_id,
                node=node.name,
                fleet=key.name,
                fleet_id=status.live.id if status.live else FleetId(""),
                provider=status.settings.provider,
                region=key.region,
                decrement=not lowered,
                policy="scale-in",
                because="drained and still empty",
            )
        )


def _already_lowered(cycle: Cycle, key: FleetKey) -> bool:
    """Whether the target was lowered for this node before, but the node was not ended.

    More nodes than the target asks for, when all that this plan ends are gone, say so: after a
    crash between the two steps the target must not go down twice. A target that this plan raises
    for nodes to come asks for them on top of all that have joined.
    """
    ending = sum(
        1
        for action in cycle.actions
        if isinstance(action, TerminateInstance)
        and (action.fleet, action.region) == (key.name, key.region)
    )
    return cycle.statuses[key].joined - ending > cycle.targets[key]


def _give_back(cycle: Cycle, node: Node, because: str) -> None:
    cycle.actions.append(
        UntaintNode(node=node.name, key=DRAINING_TAINT, policy="scale-in", because=because)
    )
    if UNNEEDED_SINCE in node.annotations:
        cycle.actions.append(
            AnnotateNode(
                node=node.name,
                key=UNNEEDED_SINCE,
                value=None,
                policy="scale-in",
                because=because,
            )
        )

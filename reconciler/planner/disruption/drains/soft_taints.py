"""Soft taints: kube-scheduler is asked not to fill nodes that are about to go.

kube-scheduler prefers the nodes with the most room left, which are the next ones that scale-in
would empty, so without a hint new pods land where they are soon evicted again. A node that is
unneeded and not emptied yet carries `fleet-reconciler.io/unneeded:PreferNoSchedule`. The
taint refuses no pod: it only puts the node last in kube-scheduler's order, and the simulation
never counts it when it asks whether a pod fits. Cluster Autoscaler does the same with its
DeletionCandidateOfClusterAutoscaler taint.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice

from reconciler.model.actions import (
    UNNEEDED_TAINT,
    PolicyName,
    TaintNode,
    UntaintNode,
    ends_drain,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.idleness import holds_only_headroom
from reconciler.planner.nodes.drain_taints import has_soft_taint
from reconciler.planner.view import ClusterView

CHANGES_MAX = 10
"""How many taints one plan adds and removes at most, to limit the patches in a large cluster.

Source: Cluster Autoscaler's --max-bulk-soft-taint-count.
"""


def update_soft_taints(
    builder: PlanBuilder,
    unneeded: Mapping[NodeName, PolicyName],
    unknown: AbstractSet[NodeName],
    room: Mapping[FleetKey, int],
) -> None:
    """Put the soft taint on unneeded nodes, and remove it from all others.

    Nodes that are being drained are left as they are: they have the hard taint.

    Args:
        builder: The plan; the drains that it begins are among its removals.
        unneeded: Nodes that may go when their time comes, in that order, and the policy of each.
        unknown: Nodes that this plan did not examine: they are left as they are.
        room: How many more nodes each fleet can do without; only so many are asked to stay empty.
    """
    view = builder.view
    draining = view.draining - {action.node for action in builder.actions if ends_drain(action)}
    settled = draining | {removal.node for removal in builder.removals if removal.node is not None}
    kept_free = _kept_free(builder) - settled
    wanted = _within_room(view, [name for name in unneeded if name not in settled], room)
    wanted |= kept_free
    others = (
        node
        for name, node in view.nodes.items()
        if name not in settled and name not in unknown and not node.deleting
    )
    changes: list[TaintNode | UntaintNode] = [
        *_untaint(node for node in others if node.name not in wanted),
        *(
            _taint(name, unneeded[name])
            for name in unneeded
            if name in wanted and not has_soft_taint(view.nodes[name])
        ),
        *(
            _taint_kept_free(name)
            for name in sorted(kept_free - unneeded.keys())
            if not has_soft_taint(view.nodes[name])
        ),
    ]
    builder.change_nodes(*islice(changes, CHANGES_MAX))


def _kept_free(builder: PlanBuilder) -> frozenset[NodeName]:
    """Return the empty nodes that are headroom.

    Without the soft taint kube-scheduler would prefer them, for moved pods too: the headroom would
    be bought again, and the node with the few pods emptied again, without end.
    """
    view = builder.view
    return frozenset(n for n in view.row_of if holds_only_headroom(builder, view.nodes[n]))


def _within_room(
    view: ClusterView, names: Iterable[NodeName], room: Mapping[FleetKey, int]
) -> frozenset[NodeName]:
    """Return per fleet as many nodes as it can do without; those with the soft taint come first."""
    left = dict(room)
    node_names: list[NodeName] = []
    for name in sorted(names, key=lambda each: not has_soft_taint(view.nodes[each])):
        key = view.inventory.fleet_of_node[name]
        if left.get(key, 0) > 0:
            left[key] -= 1
            node_names.append(name)
    return frozenset(node_names)


def _untaint(nodes: Iterable[Node]) -> Iterable[UntaintNode]:
    because = "the node is needed: it may be filled again"
    for node in filter(has_soft_taint, nodes):
        yield UntaintNode(node=node.name, key=UNNEEDED_TAINT, policy="scale-in", because=because)


def _taint_kept_free(name: NodeName) -> TaintNode:
    return TaintNode(
        node=name,
        taint=Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule"),
        policy="scale-in",
        because="its room is kept free: pods that fit elsewhere should go there",
    )


def _taint(name: NodeName, policy: PolicyName) -> TaintNode:
    return TaintNode(
        node=name,
        taint=Taint(key=UNNEEDED_TAINT, value=policy, effect="PreferNoSchedule"),
        policy=policy,
        because="unneeded, and not emptied yet: new pods should go elsewhere",
    )

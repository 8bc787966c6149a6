"""Method: empties nodes whose instance EC2 takes back, by their deadline (docs/interruptions.md).

Their pods count as demand from the start (see `opening`), so the same plan places or buys for them.
The method runs after demand, as it notes which of those purchases replace a node. Neither
disruption budgets nor the safety stop limit it: EC2 takes the instance whatever we do.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import (
    DRAIN_STARTED,
    FURTHER_INTERRUPTIONS,
    INTERRUPTION,
    REPLACEMENT_ASKED,
    AnnotateNode,
    AnyAction,
    DeletePod,
    TaintNode,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import FleetKey
from reconciler.model.interruption_annotation import REBALANCE_RECOMMENDATION
from reconciler.model.notices import SPOT_ACTIONS, SPOT_NOTICE
from reconciler.model.plan import InterruptedNode
from reconciler.model.text import counted_noun, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import (
    instance_protection,
    kept_by_duplicate,
    termination_protection,
)
from reconciler.planner.disruption.drains.actions import (
    annotate,
    drain_started,
    end_empty_node,
    evictions,
    give_back,
    taint,
)
from reconciler.planner.disruption.drains.attempts import REPLACEMENT_COUNTS_FOR, read_attempts
from reconciler.planner.disruption.drains.idleness import counted, in_use
from reconciler.planner.nodes.drain_taints import drain_reasons
from reconciler.planner.nodes.interruptions import (
    FORCED_AHEAD,
    InterruptionNotice,
    carries_withdrawn,
    read_notice,
    withdrawn_changes,
)
from reconciler.planner.rules import comes_back
from reconciler.planner.view import ClusterView

POLICY: Final = "interruption"
_NOTICES: Final = (INTERRUPTION, FURTHER_INTERRUPTIONS)
_READ_FOR: Final = timedelta(days=1)
"""An older purchase no longer counts as the node's replacement."""
LAST_CALL = timedelta(seconds=30)
"""How long before the deadline the remaining pods are deleted, regardless of budgets.

In the first half of this time pods that run to completion are evicted, as far as budgets allow.
"""


def propose(builder: PlanBuilder) -> None:
    """Empty the nodes that EC2 takes back, and give back those that it did not take."""
    view = builder.view
    _write_notices(builder)
    _remove_withdrawn(builder)
    replaced = _replaced_now(builder)
    for name, notice in view.inventory.interrupted.items():
        node = view.nodes[name]
        _empty(builder, node, notice, replaced=name in replaced)
    for node in view.nodes.values():
        if node.name not in view.inventory.fleet_of_node or node.name in view.inventory.leaving:
            continue
        if node.name in view.inventory.interrupted:
            continue
        if _begun(node):
            _give_back(builder, node)


def interrupted_nodes(view: ClusterView) -> tuple[InterruptedNode, ...]:
    """Return the progress of the nodes that EC2 takes back, sorted by name."""
    found: list[InterruptedNode] = []
    for name, notice in view.inventory.interrupted.items():
        node = view.nodes[name]
        started = drain_started(view, node) or view.at
        empty = name not in view.nodes_in_use
        left = notice.deadline - view.at
        steps = [(left - each).total_seconds() for each in (LAST_CALL, LAST_CALL / 2)]
        found.append(
            InterruptedNode(
                node=name,
                empty=empty,
                seconds=(view.at - started).total_seconds(),
                next_step_seconds=next((s for s in steps if s > 0 and not empty), None),
            )
        )
    return tuple(found)


def _write_notices(builder: PlanBuilder) -> None:
    """Write notices that are not in force yet onto their nodes, so that messages can be deleted.

    Notices that another one outranks are written too: they apply once that one is withdrawn.
    """
    inventory = builder.view.inventory
    for name, notice in inventory.noticed.items():
        node = builder.view.nodes[name]
        if name not in inventory.interrupted and read_notice(node) != notice:
            builder.change_nodes(
                annotate(node, INTERRUPTION, notice.annotation, POLICY, str(notice))
            )
        further = notice.further_annotation
        if node.annotations.get(FURTHER_INTERRUPTIONS, "") != further:
            because = f"{notice}, before what else EC2 has announced"
            builder.change_nodes(
                annotate(node, FURTHER_INTERRUPTIONS, further or None, POLICY, because)
            )


def _remove_withdrawn(builder: PlanBuilder) -> None:
    """Remove changes that the queue withdraws from their nodes, which ends drains for them."""
    view = builder.view
    withdrawn = withdrawn_changes(view.snapshot.notices)
    for node in view.nodes.values() if withdrawn else ():
        if node.name not in view.inventory.fleet_of_node or node.name in view.inventory.noticed:
            continue
        if carries_withdrawn(node, withdrawn) and not _begun(node):
            because = "AWS Health says that the change is cancelled, or done"
            carried = [key for key in _NOTICES if key in node.annotations]
            builder.change_nodes(*(annotate(node, key, None, POLICY, because) for key in carried))


def _empty(builder: PlanBuilder, node: Node, notice: InterruptionNotice, *, replaced: bool) -> None:
    view = builder.view
    key = view.inventory.fleet_of_node[node.name]
    pods = view.pods_on.get(node.name, ())
    if not in_use(pods) and _begun(node) and _was_replaced(view, node):
        _end(builder, node, key)
        return
    protect = tuple(_protect(builder, node, notice, replaced=replaced))
    builder.interrupt((*protect, *_clear(builder, node, notice, pods)))
    detail = f"{notice}: {counted_noun(len(counted(pods)), 'pod')} still on it"
    builder.block(node, "interrupted", detail)


def _begun(node: Node) -> bool:
    return POLICY in drain_reasons(node)


def _was_replaced(view: ClusterView, node: Node) -> bool:
    """Return whether the node's own fleet was asked for a replacement.

    A node that a voluntary method asked for before the drain may belong to another fleet, or be
    days old: it counts if it was asked for shortly before, and a node of this fleet has joined
    since.
    """
    began = drain_started(view, node)
    asked = read_attempts(node.annotations.get(REPLACEMENT_ASKED, ""), view.at, _READ_FOR)
    if began is None or asked is None:
        return False
    if asked.latest >= began:
        return True
    others = view.statuses[view.inventory.fleet_of_node[node.name]].nodes
    came = any(n.created_at is not None and n.created_at >= asked.latest for n in others)
    return came and began - asked.latest < REPLACEMENT_COUNTS_FOR


def _protect(
    builder: PlanBuilder, node: Node, notice: InterruptionNotice, *, replaced: bool
) -> Iterator[AnnotateNode | TaintNode]:
    """Yield the annotation and the taint; they come first so that no later failure loses them."""
    at = rfc3339(builder.view.at)
    if read_notice(node) != notice:
        yield annotate(node, INTERRUPTION, notice.annotation, POLICY, str(notice))
    if DRAIN_STARTED not in node.annotations:
        yield annotate(node, DRAIN_STARTED, at, POLICY, str(notice))
    if replaced:
        because = "this plan asks its fleet for a replacement"
        yield annotate(node, REPLACEMENT_ASKED, at, POLICY, because)
    if not _begun(node):
        yield taint(node, POLICY, str(notice), forced=True)


def _noticed_at(view: ClusterView, notice: InterruptionNotice) -> datetime:
    """Return when the node began to be emptied at the earliest, as its deadline says."""
    is_spot = notice.action in SPOT_ACTIONS and notice.deadline - view.at <= SPOT_NOTICE
    return notice.deadline - (SPOT_NOTICE if is_spot else FORCED_AHEAD)


def _came_back(view: ClusterView, node: Node, notice: InterruptionNotice, pod: Pod) -> bool:
    """Return whether the pod was created after the drain began, and would return once more.

    With the drain's taint only pods that tolerate it return. Without it, as it is not there yet or
    is refused, any pod may: then those are meant that were created since the notice.
    """
    began, tainted = drain_started(view, node), _begun(node)
    if began is None and not tainted:
        began = _noticed_at(view, notice)
    if began is None or pod.created_at is None:
        return False
    returns = not tainted or comes_back(pod.spec.tolerations)
    return returns and pod.created_at >= began


def _clear(
    builder: PlanBuilder, node: Node, notice: InterruptionNotice, pods: Sequence[Pod]
) -> Sequence[AnyAction]:
    """Return evictions while there is time for them, and deletions at the end.

    Pods that run to completion, such as those of Jobs, may still finish and are left alone until
    then. So is a pod that was scheduled to the draining node: it would return. The Eviction API
    refuses pods that two budgets cover. At the end no budget holds a pod, but a pod that was not
    evicted before is evicted if possible: only then its Job learns that it was disrupted. What is
    left after that is deleted soon.
    """
    view, coverage = builder.view, builder.budgets.coverage
    left = notice.deadline - view.at
    movable = [pod for pod in pods if not (pod.daemon or pod.mirror or pod.deleting)]
    if left > LAST_CALL:
        asked = [
            pod
            for pod in movable
            if not (pod.runs_to_completion or _came_back(view, node, notice, pod))
        ]
    elif DRAIN_STARTED not in node.annotations:
        asked = movable
    else:
        asked = [pod for pod in movable if pod.runs_to_completion] if left > LAST_CALL / 2 else []
    allowed = builder.budgets.take_now(pod for pod in asked if len(coverage.of(pod)) <= 1)
    grace_max = max(1.0, left.total_seconds())
    evicted = evictions(node, allowed, grace_max, POLICY, str(notice), forced=True)
    if left > LAST_CALL:
        return evicted
    keys = {pod.key for pod in allowed}
    deleted = [
        DeletePod(
            pod=pod.key,
            node=node.name,
            grace_seconds=int(min(pod.spec.termination_grace_seconds, grace_max)),
            policy=POLICY,
            because=f"{notice}, and it is still there",
            forced=True,
        )
        for pod in sorted(movable, key=lambda pod: pod.key)
        if pod.key not in keys
    ]
    return [*evicted, *deleted]


def _end(builder: PlanBuilder, node: Node, key: FleetKey) -> None:
    """End an empty node for which a replacement was asked, so that EC2 does not launch another.

    If its end were left to EC2, the fleet would replace it although its target was raised for the
    replacement already. Nodes without a purchase are left to EC2 and their fleet, and the target
    never falls below the minimum.
    """
    status = builder.view.statuses[key]
    instance = builder.view.inventory.instance_of_node.get(node.name)
    uncounted = instance is not None and not instance.counts
    if status.may_end_nothing or node.instance_id is None or uncounted:
        return
    duplicate = kept_by_duplicate(builder.view, node)
    if duplicate is not None:
        builder.block(node, duplicate.code, duplicate.detail)
        return
    refused = instance_protection(instance) or termination_protection(
        builder.view, node.instance_id
    )
    if refused is not None:
        builder.block(node, "interrupted", f"it is empty, and left to EC2: {refused.detail}")
        return
    if builder.targets[key] - 1 < status.min:
        builder.block(node, "interrupted", "it is empty, and its fleet replaces it")
        return
    because = "EC2 takes it back, it is empty, and its replacement was asked for"
    ended = end_empty_node(
        builder.view, node, status, lower_target=True, policy=POLICY, because=because
    )
    builder.finish_drain(ended)


def _replaced_now(builder: PlanBuilder) -> frozenset[str]:
    """Return the interrupted nodes for which this plan asks their own fleet for a node."""
    view = builder.view
    if not view.inventory.interrupted:
        return frozenset()
    rows: dict[FleetKey, set[int]] = {}
    for row in _rows_for_displaced(builder) | _rows_without_pods(builder):
        planned = builder.planned_nodes[row]
        if not planned.launching:
            rows.setdefault(planned.key, set()).add(row)
    found: set[str] = set()
    for name in view.inventory.interrupted:
        own = rows.get(view.inventory.fleet_of_node[name])
        if own and not _was_replaced(view, view.nodes[name]):
            own.pop()
            found.add(name)
    return frozenset(found)


def _rows_for_displaced(builder: PlanBuilder) -> set[int]:
    """Return the rows of planned nodes that are to take pods of interrupted nodes."""
    displaced = builder.view.displaced
    return {
        row
        for reservation in builder.reservations
        for row, pods in reservation.by_row()
        if row in builder.planned_nodes and any(pod.key in displaced for pod in pods)
    }


def _rows_without_pods(builder: PlanBuilder) -> set[int]:
    """Return the planned nodes without a reservation: they keep a fleet at its minimum."""
    return {row for row in builder.planned_nodes if row not in builder.used_rows}


def _give_back(builder: PlanBuilder, node: Node) -> None:
    """Give a node back whose notice was withdrawn, or whose time has passed.

    Other notices stay on it.
    """
    because = "no notice of an interruption is in force any more"
    stays = node.name in builder.view.inventory.noticed
    keys = (REPLACEMENT_ASKED,) if stays else (*_NOTICES, REPLACEMENT_ASKED)
    noted = [annotate(node, key, None, POLICY, because) for key in keys if key in node.annotations]
    builder.cancel_drain((*give_back(node, POLICY, because), *noted))


def explain_notices(builder: PlanBuilder) -> None:
    """Note for the other nodes with a notice why nothing is done about it."""
    view = builder.view
    for node in view.nodes.values():
        if INTERRUPTION not in node.annotations or node.name not in view.inventory.fleet_of_node:
            continue
        notice = read_notice(node)
        passed_over = not view.settings.drains_for_rebalance
        if notice is None:
            why = f"its annotation {INTERRUPTION} is not <action>/<RFC 3339>: nothing is done"
            builder.block(node, "unreadable-notice", why)
        elif notice.action == REBALANCE_RECOMMENDATION and passed_over:
            why = f"{notice}; interruption.rebalance says that nothing is done about it"
            builder.block(node, "notice-not-acted-on", why)
        elif notice.action in SPOT_ACTIONS and notice.deadline - view.at > FORCED_AHEAD:
            begins = notice.deadline - FORCED_AHEAD
            detail = f"{notice}: it is emptied from {rfc3339(begins)}"
            builder.block(node, "interrupted-later", detail, begins)

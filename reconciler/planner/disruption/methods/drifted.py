"""Drifted nodes: a rolling update replaces them batch by batch (docs/rolling-updates.md).

`planner.fleets.rolling_update` says when a batch may begin and what its nodes wait for. Here nodes
are chosen for a batch, new nodes are asked for, and the nodes whose time has come are drained.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from reconciler.model.actions import ROLLING_UPDATE
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.disruption.batch_blocker import batch_blocker
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.settling import settles
from reconciler.planner.disruption.candidates import Candidate
from reconciler.planner.disruption.context import DisruptionContext
from reconciler.planner.disruption.drains.actions import annotate, end_of_drain
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.disruption.method import Method
from reconciler.planner.disruption.replacement.successor import (
    ask_for_successors,
    no_successor,
)
from reconciler.planner.disruption.voluntary import VoluntaryRun
from reconciler.planner.fleets.drain_taints import is_draining
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.rolling_update import BatchMark, Update
from reconciler.planner.text import duration

POLICY: Final = "rolling-update"
PATIENCE: Final = timedelta(minutes=15)
"""A node that could not be emptied for so long after its new node came leaves its batch."""


def selects(candidate: Candidate) -> bool:
    """Whether a rolling update replaces the node now."""
    return candidate.outdated is not None and candidate.outdated.policy == POLICY


def propose(run: VoluntaryRun) -> None:
    """Go on with the batches, and begin the next ones."""
    context = run.context
    for update in context.view.inventory.updates.values():
        _explain(context, update)
        _forget_old_marks(context, update)
        status = context.view.statuses[update.key]
        if update.batch:
            _ask(context, status, update)
        elif update.batch_max:
            _begin(run, status, update)
    run.drain(selects)


def _explain(context: DisruptionContext, update: Update) -> None:
    """Say of drifted nodes outside of a batch what they wait for."""
    code = "rolling-update-halted" if update.halted else "rolling-update"
    for name in update.old.keys() - update.batch.keys():
        detail = f"{update.old[name]}; {update.because}"
        context.builder.block(context.view.nodes[name], code, detail)


def _forget_old_marks(context: DisruptionContext, update: Update) -> None:
    """Take marks off nodes that no batch of this version has, and off those that do not empty."""
    builder, view = context.builder, context.view
    for name in sorted(update.old):
        node = view.nodes[name]
        if ROLLING_UPDATE not in node.annotations or is_draining(node):
            continue
        if name not in update.batch:
            because = "its batch is over: the update was halted, or there is a newer version"
            builder.mark(annotate(node, ROLLING_UPDATE, None, POLICY, because))
        elif _has_waited(context, update, node):
            because = f"it could not be emptied for {duration(PATIENCE)}: others come first"
            builder.mark(*end_of_drain(view, node, POLICY, because))
            builder.mark(annotate(node, ROLLING_UPDATE, None, POLICY, because))


def _has_waited(context: DisruptionContext, update: Update, node: Node) -> bool:
    """Whether a node of the batch may go and still stands there after `PATIENCE`."""
    ready = [n.ready_changed_at for n in update.successors_taking_pods if n.ready_changed_at]
    since = max([update.batch[node.name].at, *ready])
    return node.name in update.may_go and context.view.at - since >= PATIENCE


def _ask(context: DisruptionContext, status: FleetStatus, update: Update) -> None:
    """Ask for as many new nodes as the batch still lacks; those on their way count."""
    missing = update.successors_wanted - len(update.successors_taking_pods) - status.launching
    staying = [name for name in update.batch if not is_draining(context.view.nodes[name])]
    if missing <= 0 or not staying:
        return
    because = f"rolling update to launch template version {update.version}"
    why = ask_for_successors(context, status, missing, POLICY, because)
    if why is not None:
        for name in sorted(set(staying) - update.may_go):
            context.builder.block(context.view.nodes[name], *why)


def _begin(run: VoluntaryRun, status: FleetStatus, update: Update) -> None:
    """Choose the nodes of the next batch; new nodes are asked for when the marks are seen.

    In one plan both could be done twice: a crash between the two leaves a purchase without a mark.
    """
    context, number, most = run.context, 0, update.batch_max
    settling = _settling(run)
    closed = no_successor(context, status)
    if closed is not None:
        most = min(most, update.spare)
    for node in _in_order(context, status, update):
        if number == most:
            break
        why = settling.get(node.name) or batch_blocker(context, node, status)
        why = why or context.ledger.node_blocker(status.key, "drifted")
        if why is not None:
            context.builder.block(node, *why)
            continue
        number += 1
        mark = BatchMark(version=update.version, at=context.view.at, number=number)
        because = f"it is replaced by the rolling update to version {update.version}"
        context.builder.mark(annotate(node, ROLLING_UPDATE, str(mark), POLICY, because))
        context.ledger.take_node(status.key)
    if closed is not None and number == 0:
        for name in sorted(update.old):
            context.builder.block(context.view.nodes[name], *closed)


def _settling(run: VoluntaryRun) -> Mapping[NodeName, Blocker]:
    """Nodes whose pods may not be moved yet: a new node would be paid for, and stand idle."""
    found, at = {}, run.context.view.at
    for candidate in run.candidates:
        left = candidate.settles_for(at)
        if left is not None:
            found[candidate.node.name] = settles(left, at)
    return found


def _in_order(context: DisruptionContext, status: FleetStatus, update: Update) -> Iterator[Node]:
    """The drifted nodes that stay in use, the oldest first.

    An empty node that its fleet can do without goes when its idle time is over: nothing need come
    in its place. One that is headroom is in use: nothing but its turn would end it.
    """
    view, kept_free = context.view, context.builder.kept_free
    old = [view.nodes[name] for name in update.old]
    for node in sorted(old, key=lambda n: (n.created_at is None, n.created_at or view.at, n.name)):
        used = bool(counted(view.pods_on.get(node.name, ()))) or view.row_of[node.name] in kept_free
        if not is_draining(node) and (used or not context.room.may_leave(status.key)):
            yield node


METHOD = Method(name="drifted", policy=POLICY, propose=propose)

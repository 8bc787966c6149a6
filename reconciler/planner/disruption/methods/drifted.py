"""Method: replaces drifted nodes batch by batch, as a rolling update (docs/rolling-updates.md).

`planner.fleets.updates.rolling_update` decides when a batch may begin and what its nodes wait for.
This method chooses the nodes of a batch, asks for new nodes, and drains the nodes whose time has
come.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import DRAIN_FAILED, REPLACEMENT_ASKED, ROLLING_UPDATE
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.model.text import duration
from reconciler.planner.clocks import decided_at
from reconciler.planner.disruption.batch_blocker import batch_blocker
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.settling import settles
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import as_outdated, may_go_in_time
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import annotate, end_of_drain
from reconciler.planner.disruption.examined_nodes import TRIED_MAX, nodes_to_try
from reconciler.planner.disruption.replacement.consolidator import asked_again, asked_for
from reconciler.planner.disruption.replacement.successor import (
    ask_for_successors,
    no_successor,
)
from reconciler.planner.disruption.replacement.update_pause import (
    Rest,
    nodes_not_emptied,
    rest_of,
)
from reconciler.planner.disruption.update_order import drifted_in_order
from reconciler.planner.disruption.voluntary_run import ENOUGH_AT_ONCE, VoluntaryRun
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.updates.batch_annotation import BatchAnnotation
from reconciler.planner.fleets.updates.drift import drift_of
from reconciler.planner.fleets.updates.outdated import chosen_by_update
from reconciler.planner.fleets.updates.update import Update
from reconciler.planner.nodes.drain_taints import is_draining

POLICY: Final = "rolling-update"
PATIENCE: Final = timedelta(minutes=15)
"""A node that could not be emptied for this long after its replacement joined leaves its batch."""


def selects(candidate: Candidate) -> bool:
    """Return whether a rolling update replaces the node now."""
    return candidate.outdated is not None and candidate.outdated.policy == POLICY


def drain_batches(run: VoluntaryRun) -> None:
    """Drain the nodes of batches whose replacements have joined."""
    run.drain(selects)


def propose(run: VoluntaryRun) -> None:
    """Continue the batches, and begin the next ones."""
    context = run.context
    _remove_annotations_of_no_update(context)
    for update in sorted(context.view.inventory.updates.values(), key=_last_served):
        # A person resumes the rest that is shown, also one in which nothing else can be replaced.
        resumed = update.key.name in context.view.snapshot.cluster.resumed_updates
        rest = rest_of(context.view, update, none_chosen=resumed) if update.batch_max else None
        _explain(context, update, rest)
        _remove_old_annotations(context, update)
        _rewrite_future_annotations(context, update)
        status = context.view.statuses[update.key]
        if update.batch and update.version_known:
            _ask(context, status, update)
        elif rest is not None:
            if resumed:
                _end_rest(context, update)
        elif update.batch_max:
            _begin(run, status, update)
        _drop_undrainable(run, update)


def _last_served(update: Update) -> tuple[object, ...]:
    """Return the sort key of an update: the fleet without a new node for longest is first."""
    latest = max((node.created_at for node in update.new if node.created_at), default=None)
    return latest is not None, latest, update.key


def _explain(context: DisruptionContext, update: Update, rest: Rest | None) -> None:
    """Note for drifted nodes outside of a batch what they wait for."""
    code = "rolling-update-halted" if update.halted else "rolling-update"
    because, until = (update.because, None) if rest is None else (rest.because, rest.until)
    for name in update.old.keys() - update.batch.keys():
        detail = f"{update.old[name]}; {because}"
        context.builder.block(context.view.nodes[name], code, detail, until)


def _end_rest(context: DisruptionContext, update: Update) -> None:
    """Forget the new nodes that were not used: a person has resumed the update."""
    for each in nodes_not_emptied(context.view, update):
        for key in (REPLACEMENT_ASKED, DRAIN_FAILED):
            because = "a person resumed its rolling update"
            context.builder.change_nodes(annotate(each.node, key, None, POLICY, because))


def _remove_old_annotations(context: DisruptionContext, update: Update) -> None:
    """Remove annotations from nodes that are in no batch of this version."""
    because = "its batch is over: the update was halted, or there is a newer version"
    for name in sorted(update.old.keys() - update.batch.keys()):
        node = context.view.nodes[name]
        if ROLLING_UPDATE in node.annotations and not is_draining(node):
            context.builder.change_nodes(annotate(node, ROLLING_UPDATE, None, POLICY, because))


def _rewrite_future_annotations(context: DisruptionContext, update: Update) -> None:
    """Write annotations of the future again: no new node would seem to have joined after them."""
    for name, noted in update.batch.items():
        node = context.view.nodes[name]
        if node.annotations[ROLLING_UPDATE] != str(noted):
            because = "its timestamp was in the future"
            context.builder.change_nodes(
                annotate(node, ROLLING_UPDATE, str(noted), POLICY, because)
            )


def _remove_annotations_of_no_update(context: DisruptionContext) -> None:
    """Remove annotations from nodes that need no replacement: they would drain at once later.

    If EC2 does not show whether a node is drifted, its batch waits until it does.
    """
    view = context.view
    for status in view.inventory.fleets:
        for node in status.nodes:
            if ROLLING_UPDATE not in node.annotations or is_draining(node):
                continue
            drift = drift_of(status.live, view.inventory.instance_of_node.get(node.name))
            if view.settings.rolling_update is None:
                because = "its batch is over: rolling updates are switched off"
            elif status.settings.departing:
                because = "its batch is over: its whole fleet is being removed"
            elif not drift.reasons and not drift.unknown:
                because = "its batch is over: it is no longer drifted"
            elif status.live is not None and not status.live.launch_template_version:
                because = "its batch is over: its fleet has no launch template"
            else:
                continue
            context.builder.change_nodes(annotate(node, ROLLING_UPDATE, None, POLICY, because))


def _drop_undrainable(run: VoluntaryRun, update: Update) -> None:
    """Take nodes that cannot be emptied out of the batch; drains that this plan begins continue.

    A node that only waits for its turn stays in the batch, however long that takes. The waiting is
    noted on it, so that a pod that keeps it for a short time later does not count for all of that
    time.
    """
    builder, view = run.context.builder, run.context.view
    begun = {removal.node for removal in builder.removals}
    unlike = update.awaiting_unlike_nodes
    for name in sorted((update.may_go - begun) | unlike):
        because = f"it could not be emptied for {duration(PATIENCE)}: others come first"
        if name in unlike:
            because = "the nodes that were launched for it do not count as new"
        node, spent = view.nodes[name], view.at - _tried_since(update, name)
        if is_draining(node) or spent < PATIENCE / 2:
            continue
        if _only_waits(run, node):
            noted = replace(update.batch[name], waited_until=view.at)
            waits = "it only waits for its turn"
            builder.change_nodes(annotate(node, ROLLING_UPDATE, str(noted), POLICY, waits))
        elif spent >= PATIENCE:
            builder.change_nodes(*end_of_drain(view, node, POLICY, because))
            builder.change_nodes(annotate(node, ROLLING_UPDATE, None, POLICY, because))


def _only_waits(run: VoluntaryRun, node: Node) -> bool:
    """Return whether the node only waits for its turn: nothing of its own keeps it.

    Limits are asked before places for its pods are looked for. So a cluster in which nodes are
    emptied all day would never find out that the pods fit nowhere: this is tried here for nodes
    that a limit keeps. The time of a node that a plan did not examine does not run on either.
    """
    found = (candidate for candidate in run.candidates if candidate.node.name == node.name)
    if node.name in run.limited_nodes:
        return all(run.trials.blocker_of(candidate, in_time=False) is None for candidate in found)
    left_for_later = node.name in run.context.not_looked_at
    return left_for_later and any(may_go_in_time(run.context, candidate) for candidate in found)


def _tried_since(update: Update, name: NodeName) -> datetime:
    """Return since when a node of the batch may be drained and is kept by more than its turn.

    Number k waits for k new nodes: those that join later, as demand grows, are none of its own.
    """
    noted, ready = update.batch[name], list[datetime]()
    for nodes in (update.successors_taking_pods, update.not_new):
        ready += sorted(node.ready_changed_at for node in nodes if node.ready_changed_at)
    return max(noted.at, noted.waited_until or noted.at, *ready[: noted.number])


def _ask(context: DisruptionContext, status: FleetStatus, update: Update) -> None:
    """Ask for as many new nodes as the batch still lacks; launching ones count.

    It also lacks some if the fleet's minimum was raised, or its target lowered, in the meantime:
    then the batch could not leave although its new nodes have joined.
    """
    missing = update.successors_wanted - len(update.successors_taking_pods) - status.launching
    # A node that is not new was bought as well: one more would be no better.
    missing -= len(update.not_new)
    taken, noticed = _replaced_by_others(context, update)
    coming, for_new = _replaced_elsewhere(context, update)
    raised = context.builder.targets[status.key] - status.current - len(taken)
    missing -= len(taken) + coming + min(max(0, raised), len(noticed) + for_new)
    going = taken | noticed | {removal.node for removal in context.builder.removals}
    staying = [name for name in update.batch if not is_draining(context.view.nodes[name])]
    staying = [name for name in staying if name not in going | update.unknown]
    missing = max(missing, len(staying) - context.removal_quota.left_for_replaced(status.key))
    if missing <= 0 or not staying:
        return
    because = f"rolling update to launch template version {update.version}"
    why = ask_for_successors(context, status, missing, POLICY, because)
    if why is not None:
        for name in sorted(set(staying) - update.may_go):
            context.builder.block(context.view.nodes[name], *why)
        return
    for name in staying:
        node = context.view.nodes[name]
        asked = asked_for(context.view, node, update.version)
        if asked is None or asked.latest < update.batch[name].at:
            context.builder.change_nodes(
                asked_again(context.view, node, status.key, POLICY, update.version)
            )


def _replaced_elsewhere(context: DisruptionContext, update: Update) -> tuple[int, int]:
    """Count the batch's new nodes that no longer take pods and are replaced in another way.

    Returns:
        The number that need no replacement here (the fleet replaces nodes that EC2 takes back, and
        a node that is cordoned while it joins may be uncordoned), and the number for which the
        method `rebalance` asks for one.
    """
    view, at = context.view, context.view.at
    init, coming, asked = timedelta(seconds=view.settings.instance_init_seconds), 0, 0
    for node in update.unused_successors:
        outdated = view.inventory.outdated.get(node.name)
        young = node.created_at is not None and at - node.created_at < init
        by_group = outdated is not None and outdated.replaced_by_group
        if node.name in view.inventory.interrupted or by_group:
            coming += 1
        elif outdated is not None:
            asked += 1
        elif young and node.unschedulable and not is_draining(node):
            coming += 1
    return coming, asked


def _replaced_by_others(
    context: DisruptionContext, update: Update
) -> tuple[frozenset[NodeName], frozenset[NodeName]]:
    """Return the batch's nodes that EC2 takes back now, and those with other notices.

    A fleet launches replacements for the first by itself. For the second nodes of any fleet are
    asked for; if they are of this fleet they count as the batch's.
    """
    inventory = context.view.inventory
    taken = inventory.interrupted.keys() & update.batch.keys()
    found = inventory.outdated.items()
    noticed = {name for name, why in found if not why.has_batch} & update.batch.keys()
    return frozenset(taken), frozenset(noticed - taken)


def _begin(run: VoluntaryRun, status: FleetStatus, update: Update) -> None:
    """Choose the nodes of the next batch; a later plan reads this and asks for new nodes.

    In one plan both could be done twice: after a crash between the two, a purchase would have no
    annotation.
    """
    context, number, most = run.context, 0, min(update.batch_max, _places(run, status))
    if most <= 0:
        for name in sorted(update.old):
            context.builder.block(context.view.nodes[name], *ENOUGH_AT_ONCE)
        return
    now = decided_at(context.view.snapshot, status.nodes)
    no_new_node = no_successor(context, status)
    if no_new_node is not None:
        room = max(0, context.removal_quota.left[status.key])
        if update.spare > room == 0:
            least = f"its min_capacity of {status.min} lets none leave before"
            no_new_node = no_new_node._replace(detail=f"{no_new_node.detail}, and {least}")
        most = min(most, update.spare, room)
    for node in _drainable(run, status, update, no_new_node=no_new_node):
        if number == most:
            break
        why = context.ledger.node_blocker(status.key, "drifted")
        if why is not None:
            context.builder.block(node, *why)
            continue
        number += 1
        noted = BatchAnnotation(version=update.version, at=now, number=number)
        because = f"it is replaced by the rolling update to version {update.version}"
        context.builder.change_nodes(annotate(node, ROLLING_UPDATE, str(noted), POLICY, because))
        context.ledger.choose_node(status.key, node.name)
    if no_new_node is not None and most == 0:
        for name in sorted(update.old):
            context.builder.block(context.view.nodes[name], *no_new_node)


def _places(run: VoluntaryRun, status: FleetStatus) -> int:
    """Return how many more nodes may be chosen: as many as can be drained when their turn comes.

    0 while another node waits for its turn: a new node would be paid for and stand idle until those
    before it are gone. Nodes of fleets with a smaller limit do not count, as they may wait as long
    as anything is drained. Nor do nodes that drain now (they are gone when a new node joins) and
    nodes that a disruption budget keeps (possibly for long).
    """
    limited = run.limited_nodes
    if run.turns_at_once_max >= max(1, status.settings.scale_in.non_empty_at_once_max):
        return 0
    most = run.context.non_empty_at_once_max(status.settings, POLICY)
    next_ones = run.context.ledger.chosen_nodes - limited.keys()
    return most - run.context.non_empty_begun - len(next_ones)


def _drainable(
    run: VoluntaryRun, status: FleetStatus, update: Update, *, no_new_node: Blocker | None
) -> Iterator[Node]:
    """Yield the drifted nodes that could be emptied; note why the others could not.

    Nodes that could be emptied in whichever zone a new node joins come first, then those that could
    for some zone only: for each of these a new node is asked for at most twice a day.

    Args:
        run: The voluntary methods of this plan.
        status: The fleet.
        update: Its update.
        no_new_node: Why the fleet can have no new node, so that nodes leave without; else None.
    """
    context, trials, tried = run.context, run.trials, 0
    settling = _settling(run)
    unsure: list[Node] = []
    for node in nodes_to_try(context.view, list(drifted_in_order(context, status, update))):
        why = settling.get(node.name) or batch_blocker(context, node, status, must_go=True)
        if why is None:
            if tried == TRIED_MAX:
                break
            tried += 1
            outdated = chosen_by_update(update, node, context.view.at)
            found = as_outdated(context, node, status.key, outdated)
            if isinstance(found, Blocker):
                why = found
            elif no_new_node is not None:
                why = trials.blocker_of(found, in_time=False)
                why = why and why._replace(detail=f"{why.detail}; {no_new_node.detail}")
            else:
                why = trials.blocker_of_successor(found)
                if why and not trials.blocker_of_successor(found, some_zone=True):
                    unsure.append(node)
                    continue
        if why is None:
            yield node
        else:
            context.builder.block(node, *why)
    yield from unsure


def _settling(run: VoluntaryRun) -> Mapping[NodeName, Blocker]:
    """Return the nodes whose pods may not be moved yet: their new nodes would stand idle."""
    blockers, at = {}, run.context.view.at
    for candidate in run.candidates:
        left = candidate.settles_for(at)
        if left is not None:
            blockers[candidate.node.name] = settles(left, at)
    return blockers

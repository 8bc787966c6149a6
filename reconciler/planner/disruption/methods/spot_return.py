"""Method: replaces on-demand nodes that stand in for spot nodes (docs/failures.md).

`planner.fleets.spot.spot_return` decides when a batch may begin. This method chooses the nodes of
a batch and annotates them. Such a node is drained like an expired one, with two differences: only a
node of a cheaper spot fleet is asked for to replace it, and the moves must be worth what they save.
"""

from collections.abc import Iterator
from typing import Final

from reconciler.model.actions import SPOT_RETURN
from reconciler.model.text import rfc3339
from reconciler.planner.disruption.batch_blocker import batch_blocker
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.move_cost import moves_rank, not_worth_moving
from reconciler.planner.disruption.blockers.pods import at_minimum
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import as_outdated
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import annotate
from reconciler.planner.disruption.drains.idleness import counted, holds_only_headroom
from reconciler.planner.disruption.examined_nodes import TRIED_MAX, nodes_to_try
from reconciler.planner.disruption.voluntary_run import VoluntaryRun
from reconciler.planner.fleets.spot.spot_return import (
    HEADROOM_WAITS,
    SpotReturn,
    chosen_to_return,
)
from reconciler.planner.fleets.spot.stand_ins import StandIn
from reconciler.planner.nodes.drain_taints import is_draining

POLICY: Final = "spot-return"


def selects(candidate: Candidate) -> bool:
    """Return whether the node is in a batch that returns to spot."""
    return candidate.outdated is not None and candidate.outdated.policy == POLICY


def propose(run: VoluntaryRun) -> None:
    """Continue the batches, and begin the next ones."""
    context = run.context
    for spot_return in context.view.spot_returns:
        _remove_old_annotations(context, spot_return)
        if spot_return.waits:
            _explain(context, spot_return)
        else:
            _begin(run, spot_return)
    run.drain(selects)


def _remove_old_annotations(context: DisruptionContext, found: SpotReturn) -> None:
    """Remove the annotation from nodes that are in no batch any more."""
    for stand_in in found.nodes:
        node = stand_in.node
        if SPOT_RETURN in node.annotations and node.name not in found.batch:
            because = "its batch is over: spot is not available, or it could not be emptied in time"
            context.builder.change_nodes(annotate(node, SPOT_RETURN, None, POLICY, because))


def _explain(context: DisruptionContext, found: SpotReturn) -> None:
    """Note for nodes outside of a batch what they wait for."""
    for node in found.nodes:
        if node.node.name not in found.batch:
            detail = f"it stands in for a node of {found.key.name}; {found.waits}"
            context.builder.block(node.node, POLICY, detail)


def _begin(run: VoluntaryRun, found: SpotReturn) -> None:
    """Annotate the nodes of the next batch: as many as disruption budgets allow, cheapest first.

    The next plan sees the annotations and drains the nodes. Nodes whose pods have no place are
    left out: they would use up a place in every batch.
    """
    context, tried = run.context, 0
    for stand_in in found.nodes:
        if holds_only_headroom(context.builder, stand_in.node):
            detail = f"it stands in for a node of {found.key.name}; {HEADROOM_WAITS}"
            context.builder.block(stand_in.node, POLICY, detail)
    because = f"it goes back to {found.key.name}, which is available again"
    for stand_in in _cheapest_first(context, found):
        blocked = _blocker(context, stand_in) or context.ledger.node_blocker(
            stand_in.key, "spot-reschedule"
        )
        if blocked is None:
            if tried == TRIED_MAX:
                break
            tried += 1
            blocked = _has_no_place(run, stand_in, found)
        if blocked is not None:
            context.builder.block(stand_in.node, *blocked)
            continue
        noted = rfc3339(context.view.at)
        context.builder.change_nodes(annotate(stand_in.node, SPOT_RETURN, noted, POLICY, because))
        context.ledger.take_node(stand_in.key)
        context.chosen_now.add(stand_in.node.name)


def _has_no_place(run: VoluntaryRun, each: StandIn, found: SpotReturn) -> Blocker | None:
    """Return why its pods could not move, even to new spot nodes; None if they could."""
    outdated = chosen_to_return(found.key, run.context.view.at)
    candidate = as_outdated(run.context, each.node, each.key, outdated)
    return candidate if isinstance(candidate, Blocker) else run.trials.blocker_of(candidate)


def _cheapest_first(context: DisruptionContext, found: SpotReturn) -> Iterator[StandIn]:
    """Yield nodes in use, those with fewer and cheaper moves first; idle ones leave by scale-in."""
    pods_on = context.view.pods_on
    used = [(counted(pods_on.get(stand_in.node.name, ())), stand_in) for stand_in in found.nodes]
    ranked = sorted(
        (moves_rank(pods), stand_in.node.name, stand_in) for pods, stand_in in used if pods
    )
    nodes = {name: stand_in for _, name, stand_in in ranked if not is_draining(stand_in.node)}
    for node in nodes_to_try(context.view, [stand_in.node for stand_in in nodes.values()]):
        yield nodes[node.name]


def _blocker(context: DisruptionContext, each: StandIn) -> Blocker | None:
    """Return what would prevent a drain of the node onto spot capacity."""
    view = context.view
    status = view.statuses[each.key]
    if not context.removal_quota.allows(each.key, each.node.name):
        return at_minimum(status)
    blocked = batch_blocker(context, each.node, status, must_go=False)
    if blocked is not None:
        return blocked
    old, new = view.offers[each.key], view.offers[each.instead_of]
    if not (old.priced and new.priced):
        return Blocker("move-cost", f"the price of {each.instead_of.name} is not known")
    saved = old.nano_usd_per_hour - new.nano_usd_per_hour
    pods = counted(view.pods_on.get(each.node.name, ()))
    return not_worth_moving(pods, saved, status.settings.scale_in.move_cost_usd)

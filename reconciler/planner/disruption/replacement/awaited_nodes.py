"""Idle nodes that wait for the pods of a more expensive node, so as not to be bought again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.model.ids import NodeName
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import may_go_in_time
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.empty_nodes import EligibleNodes
from reconciler.planner.disruption.examined_nodes import examined
from reconciler.planner.disruption.replacement.removal_trials import RemovalTrials
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation


def find_awaited(
    context: DisruptionContext, candidates: list[Candidate], eligible: EligibleNodes
) -> Mapping[NodeName, NodeName]:
    """Return the idle nodes that should wait for a more expensive node, by name, with that node.

    They wait while only time, or its turn, keeps the expensive node, or pods that are being moved
    (these use up PodDisruptionBudgets and the blast radius for some minutes). Other limits may
    last, such as the rest after a failed drain or min_capacity.

    Args:
        context: The run, before empty nodes are removed.
        candidates: Every node that may be emptied.
        eligible: The nodes that have been empty long enough to go, and the spares among them, which
            take no pods.
    """
    removable = eligible.removable
    wanted = context.view.settings.consolidation or any(
        each.must_go or each.goes_back_to_spot for each in candidates
    )
    if not (wanted and candidates and removable):
        return {}
    open_to_pods = removable | eligible.spares
    seen = replace(context, spares={*context.spares, *open_to_pods})
    last = [c.node.name for c in reversed(candidates)]
    simulator = DrainSimulator(
        context.builder, context.closed | open_to_pods, last, context.under_way
    )
    looked_at = _sets_first(context, examined(context, candidates))
    trials = RemovalTrials(seen, simulator, looked_at)
    node_names: dict[NodeName, NodeName] = {}
    begin = simulator.checkpoint()
    for candidate in looked_at:
        # As in `VoluntaryRun._needed`: pods of a fleet at its minimum keep their places.
        node, key = candidate.node, candidate.status.key
        if simulator.staying_alone(node) and context.removal_quota.allows(key, node.name):
            coming = trials.consolidator.coming_rows(candidate)
            idle = trials.consolidator.cheaper_rows(candidate, removable)
            decided = context.sets.set_of(node.name) is not None
            leave = trials.leave_with_set if decided else trials.leave
            moves = leave(candidate, [*idle, *coming])
            in_time = may_go_in_time(context, candidate, when_others_moved=True)
            if in_time and isinstance(moves, Relocation):
                for row in set(moves.rows).intersection(idle):
                    node_names.setdefault(context.builder.row_name(row), node.name)
    simulator.undo(begin)
    return node_names


def _sets_first(context: DisruptionContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Move the nodes of sets first, in their order: their places were decided with them."""
    members = [c for c in candidates if context.sets.set_of(c.node.name) is not None]
    others = [c for c in candidates if context.sets.set_of(c.node.name) is None]
    return [*sorted(members, key=Candidate.order_in_set), *others]

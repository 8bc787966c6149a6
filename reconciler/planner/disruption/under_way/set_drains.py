"""Replacement sets of earlier plans: their nodes are drained one by one, or the set is given up."""

from datetime import timedelta

from reconciler.model.actions import REPLACEMENT_SET, REPLACEMENT_SET_FAILED
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.drains.actions import annotate
from reconciler.planner.disruption.drains.replacement_sets import (
    HELD_MAX,
    LASTS_MAX,
    ReplacementSet,
    failed_again,
)
from reconciler.planner.disruption.voluntary_run import VoluntaryRun
from reconciler.planner.nodes.drain_taints import is_draining


def continue_sets(run: VoluntaryRun) -> None:
    """Begin the next drains of each set, as far as limits allow; give up sets that cannot go on."""
    builder, sets = run.context.builder, run.context.sets
    for node in sets.unreadable:
        because = "the annotation of its replacement set cannot be read"
        builder.change_nodes(annotate(node, REPLACEMENT_SET, None, "consolidation", because))
    for replacement in sets.found:
        why = _why_over(run, replacement) or _drain(run, replacement) or _why_late(run, replacement)
        if why is not None and not all(map(is_draining, replacement.members)):
            _give_up(run, replacement, why)


def _why_over(run: VoluntaryRun, replacement: ReplacementSet) -> str | None:
    """Return why the set is given up; None while it may go on."""
    view = run.context.view
    if not view.settings.consolidation:
        return "consolidation is switched off"
    statuses = [s for key in replacement.wanted if (s := view.statuses.get(key)) is not None]
    # That EC2 does not answer passes; then the set waits.
    refusing = [s.key.name for s in statuses if s.unavailable and s.silent_since is None]
    if not replacement.complete and refusing:
        return f"{', '.join(sorted(refusing))} cannot give the new nodes now"
    return None


def _why_late(run: VoluntaryRun, replacement: ReplacementSet) -> str | None:
    """Return why the set is given up for lack of time; None while it has time.

    It also has time while a drain of it is running, or while only limits on the number of disrupted
    nodes keep its nodes: giving it up then would undo its purchase.
    """
    context = run.context
    lasted = context.view.at - replacement.at - _join_time(run)
    names = replacement.names
    going_on = names & {removal.node for removal in context.builder.removals}
    going_on |= {node.name for node in replacement.members if is_draining(node)}
    waiting = names & run.limited_nodes.keys()
    most = HELD_MAX if waiting else LASTS_MAX
    if going_on or lasted <= most:
        return None
    return "its nodes have not all left within the time limit of a set"


def _join_time(run: VoluntaryRun) -> timedelta:
    """Return how long the new nodes may take to join."""
    return timedelta(seconds=run.context.view.settings.instance_init_seconds)


def _drain(run: VoluntaryRun, replacement: ReplacementSet) -> str | None:
    """Begin the drains that may begin now; return why no node of the set can leave any more.

    None while one of them can, or while new nodes of the set are still to join.
    """
    context = run.context
    builder, at = context.builder, context.view.at
    staying = [node for node in replacement.members if not is_draining(node)]
    for node in staying:
        context.unneeded[node.name] = "consolidation"
    if not replacement.complete and at - replacement.at < _join_time(run):
        coming = counted_noun(sum(replacement.wanted.values()) - len(replacement.came), "new node")
        for node in staying:
            nodes = counted_noun(len(replacement.members), "node")
            because = f"waiting for {coming}; then {nodes} will be drained as one set"
            builder.block(node, "consolidation", because)
        return None
    names = {node.name for node in staying}
    members = [c for c in run.candidates if c.node.name in names and not c.must_go]
    # Its own method drains what must go, and what keeps others may pass: a Job, a node that is not
    # Ready, a call of EC2 that failed.
    kept = (names & context.view.nodes_in_use) - {c.node.name for c in members}
    able = bool(kept) or len(staying) < len(replacement.members)
    with run.simulator.closed(names):
        for candidate in sorted(members, key=Candidate.order_in_set):
            able |= _drain_next(run, candidate)
    return None if able or not staying else "none of its nodes can leave any more"


def _drain_next(run: VoluntaryRun, candidate: Candidate) -> bool:
    """Begin the drain if the limits allow it; return whether the node can leave, now or later.

    Either way the nodes after it see where its pods would go.
    """
    builder = run.context.builder
    why = run.limit_of(candidate, decided=True)
    moves = run.trials.leave_with_set(candidate, ())
    if moves is None:
        why = Blocker("no-destination", "its pods do not fit where its set was to move them")
        builder.block(candidate.node, *why)
        return False
    if why is not None:
        builder.block(candidate.node, *why)
        run.simulator.note(moves)
        # Any other limit may allow it later; only its fleet's minimum may keep it for good.
        in_time = run.context.removal_quota.allows_in_time(
            candidate.status.key, candidate.node.name
        )
        return in_time or why.code != "min-capacity"
    run.begin(candidate, moves)
    return True


def _give_up(run: VoluntaryRun, replacement: ReplacementSet, because: str) -> None:
    """Keep the nodes that do not drain yet; they rest before they may join another set.

    The new nodes get the same annotation: for a day they belong to no set that would buy the same
    again. The old nodes may soon leave in another way, and the note of the failure would go with
    them.
    """
    builder, view = run.context.builder, run.context.view
    failures = [failed_again(view, node) for node in replacement.members]
    failed = str(max(failures, key=lambda found: found.count))
    staying = [node for node in replacement.members if not is_draining(node)]
    for node in (*staying, *(view.nodes[name] for name in replacement.came)):
        builder.change_nodes(
            annotate(node, REPLACEMENT_SET_FAILED, failed, "consolidation", because)
        )
    for node in staying:
        run.context.unneeded.pop(node.name, None)
        builder.block(node, "consolidation", f"its set was given up: {because}")
        builder.change_nodes(annotate(node, REPLACEMENT_SET, None, "consolidation", because))

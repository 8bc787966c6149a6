"""Method: replaces a set of nodes by fewer or cheaper ones (docs/scale-in.md).

This is the last step of consolidation. It runs in the first plan of every ten seconds, in sectors
where nothing else is to be done, no node joined recently and no set is under way. The new nodes are
asked for first; `under_way.set_drains` drains the set once they have joined.
"""

from collections.abc import Iterable
from datetime import timedelta

from reconciler.model.actions import REPLACEMENT_SET
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import counted_noun
from reconciler.planner.clocks import decided_at
from reconciler.planner.disruption.blockers.settling import last_bound
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.drains.actions import annotate
from reconciler.planner.disruption.drains.replacement_sets import encode, rests_until
from reconciler.planner.disruption.examined_nodes import begins_a_turn
from reconciler.planner.disruption.replacement.set_search import ProposedSet, SetSearch
from reconciler.planner.disruption.voluntary_run import VoluntaryRun
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import NANO
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.view import ClusterView


def propose(run: VoluntaryRun) -> None:
    """Decide on the best set of each sector that is at rest."""
    view = run.context.view
    if not view.settings.consolidation or not run.candidates or not begins_a_turn(view):
        return
    busy = _busy_sectors(run)
    pools: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in run.candidates:
        sector = candidate.status.settings.sector
        if sector not in busy and _may_join(run, candidate):
            pools.setdefault((sector, candidate.status.key.region), []).append(candidate)
    for (sector, _), could_go in sorted(pools.items(), key=lambda each: each[0]):
        pool = _within_room(run, could_go)
        if sector not in busy and len(pool) > 1:
            proposed_set = SetSearch(run.context, run.trials, sector).best(pool)
            if proposed_set is not None:
                _ask(run, proposed_set)
                busy.add(sector)


def _busy_sectors(run: VoluntaryRun) -> set[str]:
    """Return the sectors in which something happens or is about to."""
    builder, view = run.context.builder, run.context.view
    busy = set(run.context.sets.sectors)
    busy.update(s for w in builder.waiting if w.done for s in w.sectors)
    owners, statuses = view.inventory.fleet_of_node, view.statuses
    changing = {p.key for p in builder.planned_nodes.values()}
    changing |= {key for key in statuses if builder.new_nodes(key)}
    changing |= {r.key for r in builder.removals if r.key in statuses}
    context, kept = run.context, {c.node.name for c in run.candidates if c.kept_for_long}
    moving = [*context.chosen_now, *context.unneeded, *context.timed_for_later]
    moving += (c.node.name for c in run.candidates if c.goes_back_to_spot)
    moving += (n for n in owners if is_draining(view.nodes[n]))
    changing |= {owners[name] for name in moving if name in owners and name not in kept}
    changing |= {key for name, key in owners.items() if _is_new(view, name, key)}
    return busy | {statuses[key].settings.sector for key in changing}


def _is_new(view: ClusterView, name: NodeName, key: FleetKey) -> bool:
    """Return whether the node was created more recently than the timers of its fleet run.

    Next to new nodes single ones often become superfluous within that time, with far fewer moves.
    """
    created = view.nodes[name].created_at
    return created is not None and view.at - created < _rest_time(view.statuses[key])


def _rest_time(status: FleetStatus) -> timedelta:
    """Return for how long a sector and the pods of a set must have been unchanged."""
    settings = status.settings.scale_in
    return timedelta(seconds=max(settings.consolidate_after_seconds, settings.unneeded_seconds))


def _may_join(run: VoluntaryRun, candidate: Candidate) -> bool:
    """Return whether the node may belong to a set and could be drained now.

    No pod may have come to it for as long as the longest of its timers.
    """
    view, status = run.context.view, candidate.status
    if candidate.must_go or candidate.goes_back_to_spot or not view.offers[status.key].priced:
        return False
    latest = last_bound(candidate.placed, view.at)
    if latest is not None and view.at - latest < _rest_time(status):
        return False
    noted = REPLACEMENT_SET in candidate.node.annotations
    if noted or rests_until(view, candidate.node) is not None:
        return False
    sector = status.settings.sector
    served = sector in run.trials.consolidator.sectors_of(candidate)
    return served and run.limit_of(candidate, decided=True) is None


def _within_room(run: VoluntaryRun, pool: Iterable[Candidate]) -> list[Candidate]:
    """Return per fleet as many nodes as it can do without once its idle ones go, the least used."""
    left = dict(run.context.removal_quota.left)
    for name in run.context.idle:
        left[run.context.view.inventory.fleet_of_node[name]] -= 1
    candidates: list[Candidate] = []
    for candidate in sorted(pool, key=lambda c: (c.share, c.node.name)):
        if left[candidate.status.key] > 0:
            left[candidate.status.key] -= 1
            candidates.append(candidate)
    return candidates


def _ask(run: VoluntaryRun, found: ProposedSet) -> None:
    """Ask for the new nodes, and note the decision on every node of the set."""
    builder = run.context.builder
    there = [node for key in found.wanted for node in builder.view.statuses[key].nodes]
    text = encode(decided_at(builder.view.snapshot, there), found.wanted, found.saving)
    nodes, saved = counted_noun(len(found.members), "node"), found.saving / NANO
    because = f"{nodes} can be replaced together, which saves {saved:.4g} USD/h"
    for key, count in sorted(found.wanted.items()):
        builder.ask_for_replacements(key, count, "consolidation", because)
    for member in found.members:
        builder.change_nodes(annotate(member.node, REPLACEMENT_SET, text, "consolidation", because))
        builder.block(
            member.node, "consolidation", f"{because}; it is drained when the new ones have joined"
        )
        run.context.unneeded[member.node.name] = "consolidation"

"""Method: the spot rescheduler drains on-demand nodes if spot nodes have room for all their pods.

One node at a time. It is drained like any other, onto spot nodes only, and given back once it is
empty (`under_way`); scale-in ends it if it stays empty.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta

import numpy as np

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import counted_noun, duration
from reconciler.planner.clocks import is_beyond_skew
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.nodes import first_blocker
from reconciler.planner.disruption.blockers.pods import IN_USE, movable
from reconciler.planner.disruption.blockers.settling import settled_at, settles
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import lasting_blocker
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.replacement.kept_headroom import KeptHeadroom
from reconciler.planner.disruption.simulator.spreading import soft_taints_of_others
from reconciler.planner.disruption.spot_rules import (
    POLICY,
    by_cpu,
    drain_settings,
    is_on_demand,
    is_spot,
    judge_for,
    spot_rows,
)
from reconciler.planner.disruption.voluntary_run import VoluntaryRun
from reconciler.planner.disruption_settings import SpotRescheduler
from reconciler.planner.headroom.lifted_headroom import LiftedHeadroom
from reconciler.planner.nodes.drain_taints import drain_reasons
from reconciler.planner.nodes.interruptions import read_notices
from reconciler.planner.placement.classes import Group
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.view import ClusterView

ENOUGH = Blocker("spot-reschedule-turn", "another on-demand node is emptied first")
NOT_YET = Blocker("spot-reschedule-turn", "it is examined again within some minutes")
TRIALS_MAX = 6
"""Nodes whose moves one plan simulates: 500 of them took 6 to 7 s on 1,000 nodes."""
EXAMINED_MAX = 60
"""How many nodes one plan examines; most are excluded quickly by CPU and memory."""
_TURN_SECONDS = 10
NO_ROOM = Blocker("no-spot-room", "spot nodes together have no room for all of its pods")


def propose(run: VoluntaryRun) -> None:
    """Begin to empty the first on-demand node whose pods all fit on spot nodes."""
    rules = run.context.view.settings.spot_rescheduler
    if rules is None:
        return
    nodes = sorted(_on_demand(run, rules), key=lambda each: _requested(run, each[0]))
    waits = _why_all_wait(run.context, rules) if nodes else None
    search = _Search(run, rules) if nodes and waits is None else None
    for node, key in nodes if search is None else search.in_order_of_trials(nodes):
        why = waits if search is None else search.try_to_empty(node, key)
        if why is not None:
            run.context.builder.stays_on_demand(node, *why)


def _on_demand(run: VoluntaryRun, rules: SpotRescheduler) -> Iterator[tuple[Node, FleetKey]]:
    """Yield our on-demand nodes with pods that no other method drains."""
    builder, view = run.context.builder, run.context.view
    begun = {removal.node for removal in builder.removals}
    for node, key in run.context.open_nodes:
        has_pods = node.name in view.nodes_in_use
        if is_on_demand(node, rules) and node.name not in begun and has_pods:
            yield node, key


def _requested(run: VoluntaryRun, node: Node) -> tuple[int, str]:
    """Return the sort key of nodes: the requested CPU of its pods, and its name."""
    sim, row = run.context.builder.sim, run.context.view.row_of[node.name]
    return int(sim.allocatable[row, 0] - sim.free[row, 0]), node.name


def _why_all_wait(context: DisruptionContext, rules: SpotRescheduler) -> Blocker | None:
    """Return what keeps all on-demand nodes from being drained now; None if nothing.

    Pending pods keep them only if the plan has places for them: others may be pending forever.
    """
    view = context.view
    if any(waiting.done for waiting in context.builder.waiting):
        return Blocker("pods-waiting", "pods wait for a node: nothing is moved meanwhile")
    # Drained nodes count until they are given back: otherwise pods would be moved onto them.
    ours = view.inventory.fleet_of_node
    own = any(POLICY in drain_reasons(view.nodes[name]) for name in ours)
    if own or context.non_empty_draining + context.non_empty_begun:
        return ENOUGH
    last = view.snapshot.cluster.last_drain_at
    if last is None or is_beyond_skew(last, view.at):
        # A clock that was far ahead wrote it: it would stop the rescheduler until then.
        return None
    left = min(last, view.at) + timedelta(seconds=rules.node_drain_delay_seconds) - view.at
    if left <= timedelta():
        return None
    detail = f"a node was emptied a short time ago; {duration(left)} to go"
    return Blocker("node-drain-delay", detail, view.at + left)


def _going(view: ClusterView) -> frozenset[NodeName]:
    """Return the nodes that are to be replaced or removed, or that cannot take all pods yet.

    Pods that moved there would soon move once more. EC2 may recommend to leave nodes of others too.
    """
    inventory = view.inventory
    noticed = {
        name
        for name, node in view.nodes.items()
        if any(not notice.is_over(view.at) for notice in read_notices(node))
    }
    return inventory.passing | inventory.departing | view.unequipped | noticed


def _open_though_going(
    context: DisruptionContext, going: frozenset[NodeName]
) -> AbstractSet[NodeName]:
    """Return those of our nodes on which kube-scheduler still puts pods."""
    begun = {removal.node for removal in context.builder.removals}
    return {node.name for node, _ in context.open_nodes if node.name in going} - begun


class _Search:
    """The search for the one node that a plan drains.

    Args:
        run: What voluntary methods share.
        rules: How pods are moved.
    """

    def __init__(self, run: VoluntaryRun, rules: SpotRescheduler) -> None:
        self._run, self._rules = run, rules
        context = run.context
        view, builder, simulator = context.view, context.builder, run.simulator
        going = _going(view)
        self._also = sorted(
            view.row_of[name] for name in context.idle | _open_though_going(context, going)
        )
        """Rows of nodes that do not stay for sure, on which kube-scheduler may put pods."""
        staying = {row for row in view.row_of.values() if simulator.staying[row]}
        to_keep = view.nodes.keys() - going
        spot = {view.row_of[name] for name in to_keep if is_spot(view.nodes[name], rules)}
        self._rows = spot_rows(builder, rules, spot & (staying | set(self._also)))
        self._spot = spot
        free = np.maximum(builder.sim.free[self._rows, :CPU_AND_MEMORY], 0)
        none = np.zeros(CPU_AND_MEMORY, dtype=np.int64)
        self._total = free.sum(axis=0) if len(free) else none
        self._largest = free.max(axis=0) if len(free) else none
        foreign = soft_taints_of_others(view)
        self._soft = set(simulator.tainted) - foreign.keys()
        """Rows whose only PreferNoSchedule taint is ours: it is removed from those that receive
        pods."""
        simulator.foreign = foreign
        simulator.preferences = Preferences(builder.sim, [*view.nodes.values()], taints=False)
        self._headroom = LiftedHeadroom(builder)
        self._kept_headroom = KeptHeadroom(builder, simulator)
        self._found = False
        self._trials = self._examined = 0

    def in_order_of_trials(
        self, nodes: Sequence[tuple[Node, FleetKey]]
    ) -> list[tuple[Node, FleetKey]]:
        """Return the nodes in the order in which they are tried.

        Those with the least requested CPU are always first. The others start from another position
        in each plan, as one plan has no time for all.
        """
        first, rest = list(nodes[: TRIALS_MAX // 2]), nodes[TRIALS_MAX // 2 :]
        turn = int(self._run.context.view.at.timestamp() // _TURN_SECONDS) * (TRIALS_MAX // 2)
        turn %= max(1, len(rest))
        return [*first, *rest[turn:], *rest[:turn]]

    def try_to_empty(self, node: Node, key: FleetKey) -> Blocker | None:
        """Begin the drain of the node; return a blocker if it cannot begin."""
        if self._found:
            return ENOUGH
        if self._trials == TRIALS_MAX or self._examined == EXAMINED_MAX:
            return NOT_YET
        self._examined += 1
        candidate = self._candidate(node, key)
        if isinstance(candidate, Blocker):
            return candidate
        groups = by_cpu(self._run.context.view, candidate.placed)
        asked = sum(c.requests[:CPU_AND_MEMORY] * len(pods) for c, pods in groups)
        most = np.max([c.requests[:CPU_AND_MEMORY] for c, _ in groups], axis=0)
        if (asked > self._total).any() or (most > self._largest).any():
            return NO_ROOM
        return self._move(candidate, groups)

    def _move(self, candidate: Candidate, groups: Sequence[Group]) -> Blocker | None:
        """Move the pods in the what-if cluster; begin the drain if all move to spot nodes."""
        self._trials += 1
        simulator, needed = self._run.simulator, self._needed_meanwhile(candidate)
        # This is cheap to find out, and applies to all nodes if no on-demand node has a
        # PreferNoSchedule taint.
        soft = self._soft & self._spot | needed
        with self._headroom.lifted():
            first = simulator.first_lands(candidate.node, groups, self._rows, self._also, soft)
        if first is not None and first not in self._spot:
            return self._not_preferred([first])
        checkpoint = simulator.checkpoint()
        moves = simulator.move_onto(candidate.node, groups, self._rows)
        if moves is None:
            return NO_ROOM
        freed = self._soft.intersection(moves.rows) | needed
        with self._headroom.lifted():
            lands = simulator.spread_rows(moves, self._also, freed)
        if len(lands) < len(candidate.placed) or not self._spot.issuperset(lands):
            simulator.undo(checkpoint)
            return self._not_preferred(lands)
        taken = self._kept_headroom.blocker(moves, self._also, freed)
        if taken is not None:
            simulator.undo(checkpoint)
            return taken
        self._run.begin(candidate, moves)
        self._found = True
        return None

    def _needed_meanwhile(self, candidate: Candidate) -> frozenset[int]:
        """Return the rows that may lose our soft taint while the candidate is emptied.

        Its fleet can do without one node less meanwhile, and needs the others. Nodes that are
        headroom keep the taint.
        """
        context, key = self._run.context, candidate.status.key
        builder, row_of = context.builder, context.view.row_of
        own = {row_of[node.name] for node in candidate.status.nodes} - {*builder.kept_free}
        tainted = own.intersection(self._run.simulator.tainted) - {row_of[candidate.node.name]}
        left = context.removal_quota.left[key] - 1
        return frozenset() if len(tainted) <= left else frozenset(tainted)

    def _not_preferred(self, lands: Sequence[int]) -> Blocker:
        """Return a blocker if kube-scheduler would put a pod on an on-demand node."""
        name = self._run.context.builder.row_name
        others = sorted({name(row) for row in lands if row not in self._spot})
        where = f"on {', '.join(others[:3])}" if others else "so that not all of them fit"
        return Blocker(
            "not-preferred",
            f"kube-scheduler would put its pods {where}: on-demand nodes need a"
            " PreferNoSchedule taint, and pods no preference for such nodes",
        )

    def _candidate(self, node: Node, key: FleetKey) -> Candidate | Blocker:
        """Return the node as a candidate, or the blocker that keeps it."""
        context = self._run.context
        view, status = context.view, context.view.statuses[key]
        blocked = first_blocker(view, node, status) or context.sets.blocker(node.name)
        if blocked is None and not self._run.simulator.staying_alone(node):
            blocked = IN_USE
        if blocked is not None:
            return blocked
        settings = drain_settings(status.settings.scale_in, self._rules)
        pods = view.pods_on.get(node.name, ())
        judge = judge_for(context.builder, settings)
        moving, again, blocked = movable(judge, pods)
        if blocked is not None or not moving:
            return blocked or Blocker("deleting", "its last pods are being deleted")
        count = counted_noun(len(moving), "pod")
        candidate = Candidate(
            node=node,
            status=replace(status, settings=replace(status.settings, scale_in=settings)),
            moving=moving,
            placed=[*moving, *again],
            share=0.0,
            bounces=False,
            since=None,
            settled_at=settled_at(pods, POLICY, settings, view.at),
            failures_rank=0,
            policy=POLICY,
            because=f"spot nodes have room for its {count}",
        )
        settling = candidate.settles_for(view.at)
        if settling is not None:
            return settles(settling, view.at)
        blocker = lasting_blocker(context, candidate)
        return blocker or context.ledger.node_blocker(key, POLICY) or candidate

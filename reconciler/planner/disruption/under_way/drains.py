"""Drains that earlier plans began: each is continued, ended with its node, or given back."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from reconciler.model.actions import DRAIN_STARTED, TerminateInstance, ends_drain
from reconciler.model.cluster import Node, Pod
from reconciler.model.counted_pods import counts
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.nodes import (
    cannot_end,
    irreplaceable_pod,
    kept_by_duplicate,
    protection,
    silent_since,
)
from reconciler.planner.disruption.blockers.pods import at_minimum, blocking_pod, comes_again
from reconciler.planner.disruption.drains.actions import (
    delete_when_terminated,
    end_empty_node,
    end_of_drain,
    evictions,
    give_back,
    give_up,
    terms_of,
)
from reconciler.planner.disruption.drains.idleness import in_use
from reconciler.planner.disruption.drains.overdue import (
    ends_at,
    evictions_and_deletions,
    is_overdue,
    needs_a_place,
    returned_pods,
)
from reconciler.planner.disruption.drains.replacement_sets import SetsUnderWay
from reconciler.planner.disruption.drains.stuck_terminating import STUCK_AFTER
from reconciler.planner.disruption.drains.timers import stop_timer
from reconciler.planner.disruption.limits.removals import minimum_stays
from reconciler.planner.disruption.node_disruption import Disruption, disruption_of
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation, grouped, placements_of
from reconciler.planner.disruption.spot_rules import (
    POLICY,
    by_cpu,
    drain_settings,
    judge_for,
    spot_rows,
)
from reconciler.planner.disruption.under_way.abandoned_drains import give_back_abandoned
from reconciler.planner.disruption.under_way.drain_time import time_notes, too_long
from reconciler.planner.disruption.under_way.reasons_gone import reason_gone
from reconciler.planner.disruption_settings import ScaleInSettings, SpotRescheduler
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.rules import Judge, Verdict, judge_of
from reconciler.planner.view import ClusterView


def continue_drains(builder: PlanBuilder) -> list[Relocation]:
    """Decide the next step of every draining node, and delete the Node objects of ended instances.

    A drain continues, ends with the node's instance, or is given back.

    Returns:
        Where the pods of the drains that continue go.
    """
    view = builder.view
    taken_back = {action.node for action in builder.actions if ends_drain(action)}
    under_way: list[tuple[Node, FleetKey]] = []
    others = {removal.node for removal in builder.removals} | view.inventory.interrupted.keys()
    for node in (each for each in view.nodes.values() if each.name not in others):
        key = view.inventory.fleet_of_node.get(node.name)
        if key is None:
            give_back_abandoned(builder, node)
        elif node.name in view.inventory.leaving:
            delete_when_terminated(builder, node, view.statuses[key].settings.provider)
        elif node.name in taken_back:
            stop_timer(builder, node, "pods need the node again")
        elif is_draining(node):
            under_way.append((node, key))
        elif DRAIN_STARTED in node.annotations:
            # The taint was removed, then the program was stopped or the next call failed.
            ended = end_of_drain(view, node, "scale-in", "its drain is over")
            builder.cancel_drain(ended)
    if not under_way:
        return []
    drains = _Drains(builder, [node.name for node, _ in under_way])
    for node, key in under_way:
        drain = disruption_of(view, node)
        if drain is not None and drain.kind == "graceful":
            drains.finish(node, key, drain)
    return drains.begun


class _Drains:
    """Decides the next step of drains, one node after the other.

    Args:
        builder: The plan.
        names: The nodes that drain.
    """

    def __init__(self, builder: PlanBuilder, names: Iterable[NodeName]) -> None:
        self._builder = builder
        self._simulator = DrainSimulator(builder)
        self._sets = SetsUnderWay(builder.view)
        self.begun: list[Relocation] = []
        """The moves of the drains that continue."""
        self._lowerings_to_come: dict[FleetKey, int] = {}
        """Draining nodes per fleet whose end will lower the fleet's target in a later plan."""
        self._undecided = set(names)
        """Nodes whose next step is not decided yet."""

    def finish(self, node: Node, key: FleetKey, drain: Disruption) -> None:
        """Decide the next step of the node's drain, or give it back."""
        builder, status = self._builder, self._builder.view.statuses[key]
        self._undecided.discard(node.name)
        view = builder.view
        pods = view.pods_on.get(node.name, [])
        kept = self._kept_after_all(node, key, drain, pods)
        returned = returned_pods(pods, drain.started) if self._is_overdue(node, key) else []
        others = [pod for pod in pods if pod not in returned] if returned else pods
        if kept is not None:
            builder.cancel_drain(give_back(node, drain.policy, kept.detail))
        elif in_use(others):
            self._drain_on(node, key, others, drain)
        elif (halted := cannot_end(view, node, status)) is not None:
            self._wait_empty(node, key, drain, halted)
        elif self._evicted_lately(node, key, drain):
            builder.block(node, "deleting", "its last pods are being deleted")
        else:
            _end(builder, node, key, drain, returned)

    def _kept_after_all(
        self, node: Node, key: FleetKey, drain: Disruption, pods: Sequence[Pod]
    ) -> Blocker | None:
        """Return why the node is no longer to leave; None while its drain may go on."""
        builder, view = self._builder, self._builder.view
        beside = [pod for pod in pods if not counts(pod)]
        kept = protection(view, node) or irreplaceable_pod(self._judge(node, key, drain), beside)
        if kept is not None:
            return Blocker(kept.code, f"{kept.detail}: it may not be removed")
        if self._falls_below_minimum(node, key):
            return at_minimum(view.statuses[key])
        begun = DRAIN_STARTED in node.annotations
        if view.row_of[node.name] in builder.used_rows or (in_use(pods) and not begun):
            return Blocker("in-use", "it is used again")
        kept = kept_by_duplicate(view, node) or self._stays_afterwards(node, key, drain)
        return kept or reason_gone(view, node, key, drain)

    def _falls_below_minimum(self, node: Node, key: FleetKey) -> bool:
        """Return whether the fleet would be without its minimum once this node is gone."""
        builder, status = self._builder, self._builder.view.statuses[key]
        remaining = builder.targets[key] - 1 - self._lowerings_to_come.get(key, 0)
        if not _already_lowered(builder, node, key) and remaining < status.min:
            return True
        return not minimum_stays(builder, status, self._undecided)

    def _rules(self, drain: Disruption) -> SpotRescheduler | None:
        """Return the settings of the spot rescheduler if it drains the node; None otherwise."""
        is_theirs = drain.policy == POLICY
        return self._builder.view.settings.spot_rescheduler if is_theirs else None

    def _settings(self, drain: Disruption, key: FleetKey) -> ScaleInSettings:
        settings, rules = self._builder.view.statuses[key].settings.scale_in, self._rules(drain)
        return settings if rules is None else drain_settings(settings, rules)

    def _judge(self, node: Node, key: FleetKey, drain: Disruption) -> Judge:
        settings = self._settings(drain, key)
        if self._rules(drain) is not None:
            return judge_for(self._builder, settings)
        terms = terms_of(settings, overdue=self._is_overdue(node, key))
        return judge_of(terms, self._builder.budgets.coverage, self._builder.view.at)

    def _is_overdue(self, node: Node, key: FleetKey) -> bool:
        """Return whether `terminate_after` has passed, so that its pods are deleted."""
        view = self._builder.view
        return is_overdue(view, node, view.statuses[key].settings)

    def _too_long(
        self, node: Node, key: FleetKey, drain: Disruption, left: tuple[int, int]
    ) -> Blocker | None:
        """Return a blocker if the drain has taken too long; None while there is time left.

        An overdue node has `terminate_after` as additional time: its pods keep their full grace
        period, and what prevents the end of its instance may last only a moment.
        """
        settings = self._settings(drain, key)
        if self._is_overdue(node, key):
            more = self._builder.view.statuses[key].settings.terminate_after_seconds or 0
            seconds = settings.pod_eviction_timeout_seconds + more
            settings = replace(settings, pod_eviction_timeout_seconds=seconds)
            drain = replace(drain, progress=None)
        return too_long(self._builder.view, drain, settings, *left)

    def _was_refused(self, node: Node, key: FleetKey, drain: Disruption) -> bool:
        """Return whether evictions from an overdue node have been refused for the time of a drain.

        A budget may allow an eviction that a webhook refuses each time.
        """
        view, status = self._builder.view, self._builder.view.statuses[key]
        end = ends_at(view, node, status.settings)
        since = max(filter(None, (drain.started, end)), default=view.at)
        seconds = self._settings(drain, key).pod_eviction_timeout_seconds
        return view.at - since > timedelta(seconds=seconds)

    def _evicted_lately(self, node: Node, key: FleetKey, drain: Disruption) -> bool:
        """Return whether the grace period of pods that seem stuck has not passed by our clock yet.

        The API server dates their deletion, and its clock may be far behind ours. An eviction
        grants a pod at most the fleet's limit, however long it asks for; a deletion grants all of
        it.
        """
        view = self._builder.view
        stuck = view.stuck_terminating_on.get(node.name, ())
        if not stuck or drain.started is None:
            return False
        seconds: float = max(pod.spec.termination_grace_seconds for pod in stuck)
        if not self._is_overdue(node, key):
            seconds = min(seconds, self._settings(drain, key).graceful_termination_max_seconds)
        return view.at - drain.started <= timedelta(seconds=seconds) + STUCK_AFTER

    def _stays_afterwards(self, node: Node, key: FleetKey, drain: Disruption) -> Blocker | None:
        """Return why a node stays that the spot rescheduler drained; None for other drains."""
        if drain.policy != POLICY:
            return None
        if self._rules(drain) is None:
            return Blocker("not-rescheduled", "the spot rescheduler is switched off")
        pods = self._builder.view.pods_on.get(node.name, ())
        if in_use(pods) or self._evicted_lately(node, key, drain):
            return None
        return Blocker("rescheduled", "its pods have moved to spot nodes")

    def _moves(self, node: Node, pods: Sequence[Pod], drain: Disruption) -> Relocation | None:
        """Return where its pods go; None if they fit nowhere."""
        builder, rules = self._builder, self._rules(drain)
        if rules is None:
            with_it = self._sets.set_of(node.name)
            others = () if with_it is None else [member.name for member in with_it.members]
            with self._simulator.closed(others):
                return self._simulator.move(node, grouped(builder.view, pods))
        staying = {int(row) for row in self._simulator.staying.nonzero()[0]}
        rows = spot_rows(builder, rules, staying)
        return self._simulator.move_onto(node, by_cpu(builder.view, pods), rows)

    def _drain_on(self, node: Node, key: FleetKey, pods: Sequence[Pod], drain: Disruption) -> None:
        """Evict the pods that are left, or give the drain up if it took too long or cannot end.

        While the instance cannot be ended no pod is evicted, and the time of the drain runs on.
        """
        builder, view = self._builder, self._builder.view
        halted = cannot_end(view, node, view.statuses[key])
        overdue = self._is_overdue(node, key)
        rulings = list(self._judge(node, key, drain).rulings(pods))
        left = [pod for pod, ruling in rulings if ruling.verdict is Verdict.OK]
        ending = sum(ruling.verdict is Verdict.WAIT for _, ruling in rulings)
        blocker = blocking_pod(rulings)
        if blocker is None and (halted is not None or not overdue):
            blocker = self._too_long(node, key, drain, (len(left), ending))
        elif blocker is None and not left:
            blocker = _has_died(view, node)
        moving = [*left, *(pod for pod, ruling in rulings if comes_again(pod, ruling))]
        if overdue:
            moving = [pod for pod in moving if needs_a_place(pod)]
        moves = self._moves(node, moving, drain) if blocker is None else None
        if moves is None:
            why = blocker.detail if blocker else "its pods fit nowhere else any more"
            why += "" if halted is None else f"; {halted.detail}"
            builder.cancel_drain(give_up(view, node, drain.policy, why))
            return
        self.begun.append(moves)
        self._lowerings_to_come[key] = self._lowerings_to_come.get(key, 0) + 1
        builder.reserve_moves(moves.rows)
        builder.change_nodes(*time_notes(view, node, drain, (len(left), ending)))
        if halted is not None:
            builder.block(node, *halted)
        elif overdue:
            self._evict_or_delete(node, key, drain, left, moves)
        else:
            self._evict(node, key, drain, left, moves)

    def _evict_or_delete(
        self, node: Node, key: FleetKey, drain: Disruption, left: Sequence[Pod], moves: Relocation
    ) -> None:
        """Evict the pods of an overdue node that budgets allow to evict; delete the others."""
        builder = self._builder
        now = [] if self._was_refused(node, key, drain) else builder.budgets.take_now(left)
        because = f"the drain continues: {builder.view.inventory.outdated[node.name].because}"
        gone = evictions_and_deletions(builder.budgets.coverage, node, left, now, because)
        builder.continue_drain(gone, placements_of(builder, moves))

    def _evict(
        self, node: Node, key: FleetKey, drain: Disruption, left: Sequence[Pod], moves: Relocation
    ) -> None:
        """Evict the pods that budgets allow to evict; note on the node why the others stay.

        The others are asked for again in the next plan, as after a 429.
        """
        builder = self._builder
        refused = builder.budgets.refusal(left)
        now = builder.budgets.take_now(left)
        allowed = {pod.key for pod in now}
        because = "the drain continues"
        if refused is not None and len(now) < len(left):
            because += f": {len(now)} of {counted_noun(len(left), 'pod')} now, as {refused}"
            builder.block(node, "budget", because)
        grace = self._settings(drain, key).graceful_termination_max_seconds
        builder.continue_drain(
            evictions(node, now, grace, drain.policy, because),
            [move for move in placements_of(builder, moves) if move.pod in allowed],
        )

    def _wait_empty(self, node: Node, key: FleetKey, drain: Disruption, halted: Blocker) -> None:
        """Keep an empty node that cannot be ended now; give it back if that takes too long.

        The start of the drain is noted now if the node was empty from the start or the note is
        unreadable.
        """
        builder = self._builder
        if self._too_long(node, key, drain, (0, 0)) is not None:
            why = f"it could not be ended in time; {halted.detail}"
            builder.cancel_drain(give_up(builder.view, node, drain.policy, why))
            return
        builder.block(node, *halted)
        builder.change_nodes(*time_notes(builder.view, node, drain, (0, 0)))


def _has_died(view: ClusterView, node: Node) -> Blocker | None:
    """Return a blocker if the node is silent for so long that it is to be replaced for that.

    Its pods that are being deleted stay until its instance ends: only its kubelet could end them.
    """
    if silent_since(view, node) is None:
        return None
    return Blocker("not-ready", "it is not Ready any more, and its last pods are being deleted")


def _end(
    builder: PlanBuilder, node: Node, key: FleetKey, drain: Disruption, returned: Sequence[Pod]
) -> None:
    view = builder.view
    because = "drained and still empty"
    if returned:
        because = f"drained; {counted_noun(len(returned), 'pod')} came back and would come again"
    status = view.statuses[key]
    lowered = _already_lowered(builder, node, key)
    ended = end_empty_node(
        view,
        node,
        status,
        lower_target=not lowered,
        policy=drain.policy,
        because=because,
        returned=returned,
    )
    builder.finish_drain(ended)


def _already_lowered(builder: PlanBuilder, node: Node, key: FleetKey) -> bool:
    """Return whether an earlier plan lowered the target for this node but could not end it.

    It did if there are more nodes than the target asks for once all that this plan ends are gone.
    After a crash between the two steps the target must not be lowered twice. A target that this
    plan raises asks for nodes on top of all that have joined. A node that has not joined, as it has
    a start-up taint, counts in the target only as one that the fleet owes. Nodes and instances that
    are replaced do not count, as the target still asks for them.
    """
    ending = {
        action.node
        for action in builder.actions
        if isinstance(action, TerminateInstance)
        and action.precondition == "empty"
        and (action.fleet, action.region) == (key.name, key.region)
    }
    status = builder.view.statuses[key]
    if node.name not in status.joined_nodes:
        return len(ending - status.joined_nodes) >= status.launching
    return len(status.joined_nodes - ending) > builder.targets[key]

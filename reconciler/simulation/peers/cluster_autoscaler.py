"""A model of Cluster Autoscaler, based on the sources of 1.36.

Source: kubernetes/autoscaler, cluster-autoscaler-1.36.1: core/static_autoscaler.go, core/scaledown,
loop/trigger.go, estimator/binpacking_estimator.go, expander/waste; read 2026-11.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import grouped
from reconciler.planner.placement.fill import fill
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.rules import annotations, controllers, local_storage, system_pods
from reconciler.planner.rules.verdict import Subject, Terms, Verdict
from reconciler.simulation.peers.access import Access, reschedulable, wants_node
from reconciler.simulation.peers.drain import Drain, DrainEnd, Pace
from reconciler.simulation.peers.expansion import best_expansion, spread_over_groups

REASON = "scale-down"
DELETING = Taint(key="ToBeDeletedByClusterAutoscaler", value="", effect="NoSchedule")
CANDIDATE = Taint(key="DeletionCandidateOfClusterAutoscaler", value="", effect="PreferNoSchedule")
PASS_SECONDS = 1.0
"""How long a pass takes: the next one begins no sooner."""
NEW_POD_SECONDS = 2.0
"""While all pods without room are younger, the pass waits for more."""
RECHECK_SECONDS = 300.0
"""A node that could not be emptied is checked again after this time."""
DELETIONS_MAX = 10
DRAINS_MAX = 1
SOFT_TAINTS_MAX = 10
"""How many are set or removed in one pass."""
BACKOFF_SECONDS, BACKOFF_MAX_SECONDS = 300.0, 1800.0
"""For a group that EC2 had no capacity for, or whose instance became no node; it doubles each
time."""
PACE = Pace(first_wait_seconds=5, retry_seconds=10, poll_seconds=5, give_up_seconds=120)
GPU = "nvidia.com/gpu"
MANY_ROUNDS = 1_000_000
_RULES = (controllers.judge, local_storage.judge, system_pods.judge)

MODELLED = (
    "a node group for each fleet and zone; minimum and maximum sizes",
    (
        "a pass every scan interval, at once when a pod finds no room, and again a second "
        "after a pass that scaled up or down or one before it"
    ),
    (
        "pods younger than 2 s are waited for; one expansion in a pass, first fit decreasing, "
        "expander least-waste, spread over groups that are alike"
    ),
    (
        "scale-down: utilization threshold, unneeded time, delay after add, a node that "
        "cannot be emptied left alone for 5 minutes, 10 empty nodes or one with pods at a "
        "time, 5 s after the taint, PodDisruptionBudgets, soft taints on candidates"
    ),
    (
        "an instance that is no node after 15 minutes is ended; its group, as one without "
        "capacity, is not asked again for 5 minutes, doubling to 30"
    ),
)
LEFT_OUT = (
    "other expanders; equal waste goes by name, not at random",
    "a node termination handler: pods of interrupted spot nodes end with their node",
    "limits of how long a pass may compute, and of how many nodes may be unneeded",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAutoscalerSettings:
    """Its flags, with its defaults where it has some."""

    scan_interval_seconds: float = 10.0
    scale_down_unneeded_seconds: float = 600.0
    scale_down_delay_after_add_seconds: float = 600.0
    scale_down_utilization_threshold: float = 0.5
    balance_similar_node_groups: bool = True
    """Its own default is false; its documentation recommends true with a group for each zone."""


class ClusterAutoscaler:
    """The model.

    Args:
        access: The world.
        settings: Its flags.
    """

    def __init__(self, access: Access, settings: ClusterAutoscalerSettings) -> None:
        self._access, self._settings = access, settings
        self.passes = 0
        self._due: float | None = None
        self._passed_at = float("-inf")
        self._asked_for_node = False
        self._was_productive = False
        self._scaled_up_at = float("-inf")
        self._unneeded: dict[NodeName, float] = {}
        """Since when a node is unneeded."""
        self._unremovable: dict[NodeName, float] = {}
        """Until when these are not checked."""
        self._ending: dict[NodeName, bool] = {}
        """Nodes that are ending, and whether they are drained."""
        self._ended: set[NodeName] = set()
        self._soft: set[NodeName] = set()
        self._backoff: dict[FleetKey, tuple[float, float]] = {}
        """Until when, and how long the pause was."""
        access.world.objects.pod_watchers.append(self._pod_changed)
        access.given_up_watchers.append(self._back_off)
        self._plan_pass(0.0)

    # ---- when it looks --------------------------------------------------------------------

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        if before is None and after is not None and not self._asked_for_node and wants_node(after):
            self._asked_for_node = True
            self._access.clock.call_later(0.0, self._run_at_once)

    def _run_at_once(self) -> None:
        """Begin a pass at once for a pod that no node has room for."""
        self._asked_for_node = False
        if self._access.waiting:
            self._plan_pass(max(0.0, self._passed_at + PASS_SECONDS - self._access.now))

    def _plan_pass(self, seconds: float) -> None:
        due = self._access.now + seconds
        if self._due is None or due < self._due:
            self._due = due
            self._access.clock.call_later(seconds, partial(self._pass_if_due, due))

    def _pass_if_due(self, due: float) -> None:
        if self._due == due:
            self._due = None
            self._pass()

    def _pass(self) -> None:
        """Run a pass, and again at once if this pass or the previous one changed something."""
        self._passed_at = now = self._access.now
        productive = self._is_worth_a_look(now) and self._run_pass()
        self._access.passed()
        soon = productive or self._was_productive
        self._was_productive = productive
        self._plan_pass(PASS_SECONDS if soon else self._settings.scan_interval_seconds)

    def _is_worth_a_look(self, now: float) -> bool:
        """Return whether the result can differ from that of the last pass."""
        if self._access.changed or self._access.waiting:
            return True
        wait = self._settings.scale_down_unneeded_seconds
        return any(since + wait < now for since in self._unneeded.values()) or any(
            until <= now for until in self._unremovable.values()
        )

    def _run_pass(self) -> bool:
        """Run one pass; return whether it scaled up or began to end a node."""
        self.passes += 1
        builder = self._access.look()
        left = _without_room(builder)
        oldest = min(
            (pod.created_at for w in left for pod in w.pods[w.done :] if pod.created_at),
            default=builder.view.at,
        )
        new = bool(left) and (builder.view.at - oldest).total_seconds() < NEW_POD_SECONDS
        scaled_up = bool(left) and not new and self._scale_up(builder, left)
        return self._scale_down(builder, held=new) or scaled_up

    # ---- up -------------------------------------------------------------------------------

    def _scale_up(self, builder: PlanBuilder, left: Sequence[WaitingClass]) -> bool:
        now = self._access.now
        open_groups = {
            key: self._access.room_for(key)
            for key in builder.view.offers
            if self._backoff.get(key, (0.0, 0.0))[0] <= now and self._access.room_for(key)
        }
        alike = self._settings.balance_similar_node_groups
        best = best_expansion(builder, left, open_groups)
        if best is None:
            return False
        launched = 0
        for key, count in spread_over_groups(builder, best, open_groups, alike=alike).items():
            found = len(self._access.launch(key, count))
            launched += found
            if found < count:
                self._back_off(key)
        if launched:
            self._scaled_up_at = now
        return launched > 0

    def _back_off(self, key: FleetKey) -> None:
        """Leave a group alone for a while, twice as long each time."""
        _, last = self._backoff.get(key, (0.0, 0.0))
        pause = min(BACKOFF_MAX_SECONDS, max(BACKOFF_SECONDS, 2 * last))
        self._backoff[key] = (self._access.now + pause, pause)

    # ---- down -----------------------------------------------------------------------------

    def _scale_down(self, builder: PlanBuilder, *, held: bool) -> bool:
        """Find unneeded nodes, and begin to end those unneeded for long enough."""
        now, view = self._access.now, builder.view
        self._unremovable = {n: t for n, t in self._unremovable.items() if t > now}
        self._ended &= view.nodes.keys()
        found = self._unneeded_nodes(builder)
        self._unneeded = {name: self._unneeded.get(name, now) for name in found}
        delay = self._settings.scale_down_delay_after_add_seconds
        started = False
        if not held and self._scaled_up_at + delay <= now:
            started = self._begin(builder, found)
        self._mark_softly([name for name in found if name not in self._ending])
        return started

    def _unneeded_nodes(self, builder: PlanBuilder) -> dict[NodeName, bool]:
        """Return nodes that could all be removed together, and whether each has pods to move."""
        view = builder.view
        leaving = [*self._ending, *self._ended]
        simulator = DrainSimulator(builder, closed=leaving, last=list(view.nodes))
        moving = {name: self._to_move(view.pods_on.get(name, ()), builder) for name in view.nodes}
        found: dict[NodeName, bool] = {}
        for node in self._candidates(builder, moving):
            pods = moving[node.name]
            if pods is None or builder.budgets.refusal(pods, MANY_ROUNDS) is not None:
                self._unremovable[node.name] = self._access.now + RECHECK_SECONDS
                continue
            groups = grouped(view, pods)
            if not groups:
                simulator.take_out(node, ())
            elif simulator.move(node, groups) is None:
                self._unremovable[node.name] = self._access.now + RECHECK_SECONDS
                continue
            builder.budgets.take(pods)
            found[node.name] = bool(pods)
        return found

    def _candidates(
        self, builder: PlanBuilder, moving: dict[NodeName, list[Pod] | None]
    ) -> list[Node]:
        """Return nodes with low utilisation: empty ones first, then those of the last pass."""
        view, gone = builder.view, {*self._ending, *self._ended, *self._unremovable}
        used = _utilisation(builder)
        nodes = [
            node
            for name, node in view.nodes.items()
            if name not in gone
            and name in view.inventory.fleet_of_node
            and name not in view.inventory.leaving
            and node.ready
            and used[view.row_of[name]] <= self._settings.scale_down_utilization_threshold
            and not annotations.forbidding(node.annotations)
        ]
        return sorted(nodes, key=lambda n: (moving[n.name] != [], n.name not in self._unneeded))

    def _to_move(self, pods: Sequence[Pod], builder: PlanBuilder) -> list[Pod] | None:
        """Return the pods that must run elsewhere; None when one of them blocks its node."""
        found = reschedulable(pods)
        for pod in found:
            subject = Subject(pod=pod, budgets=len(builder.budgets.coverage.of(pod)))
            terms = Terms()
            if annotations.forbids(subject, terms).verdict is Verdict.BLOCK:
                return None
            if annotations.allows(subject, terms).verdict is Verdict.OK:
                continue
            if any(rule(subject, terms).verdict is Verdict.BLOCK for rule in _RULES):
                return None
        return found

    def _begin(self, builder: PlanBuilder, found: dict[NodeName, bool]) -> bool:
        """Begin to end nodes: empty ones together, one with pods at a time."""
        now, view = self._access.now, builder.view
        wait = self._settings.scale_down_unneeded_seconds
        sizes = {key: status.current for key, status in view.statuses.items()}
        for name in self._ending:
            key = view.inventory.fleet_of_node.get(name)
            if key is not None:
                sizes[key] -= 1
        budget = DELETIONS_MAX - len(self._ending)
        drains = DRAINS_MAX - sum(self._ending.values())
        started = False
        for name in sorted(found, key=lambda n: (found[n], self._unneeded[n], n)):
            key = view.inventory.fleet_of_node[name]
            if not self._unneeded[name] + wait < now or sizes[key] <= view.statuses[key].min:
                continue
            if budget <= 0 or (found[name] and drains <= 0):
                continue
            budget, drains, sizes[key] = budget - 1, drains - found[name], sizes[key] - 1
            self._drain(view.nodes[name], has_pods=found[name])
            started = True
        return started

    def _drain(self, node: Node, *, has_pods: bool) -> None:
        self._ending[node.name] = has_pods
        self._soft.discard(node.name)
        self._access.taint(node.name, DELETING)
        Drain(
            self._access,
            node,
            PACE,
            REASON,
            partial(self._drained, node.name),
            only_empty=not has_pods,
        )

    def _drained(self, name: NodeName, end: DrainEnd) -> None:
        del self._ending[name]
        if end == "gone":
            self._ended.add(name)
        else:
            self._access.untaint(name, DELETING.key)
        self._unneeded.pop(name, None)

    def _mark_softly(self, wanted: Sequence[NodeName]) -> None:
        """Set soft taints, so that kube-scheduler prefers nodes that stay."""
        self._soft &= self._access.world.objects.nodes.keys()
        for name in sorted(self._soft - set(wanted))[:SOFT_TAINTS_MAX]:
            self._access.untaint(name, CANDIDATE.key)
            self._soft.discard(name)
        for name in sorted(set(wanted) - self._soft)[:SOFT_TAINTS_MAX]:
            self._access.taint(name, CANDIDATE)
            self._soft.add(name)


def _without_room(builder: PlanBuilder) -> list[WaitingClass]:
    """Return the demand that fits on no existing or launching node."""
    sim = builder.sim
    among, order = np.ones(sim.rows, dtype=np.bool_), np.arange(sim.rows, dtype=np.int64)
    for waiting in builder.waiting:
        found = fill(sim, waiting.pod_class, waiting.left, among, order)
        waiting.take(sum(amount for _, amount in found))
    return [waiting for waiting in builder.waiting if waiting.left]


def _utilisation(builder: PlanBuilder) -> list[float]:
    """Return by row the larger utilisation of CPU and memory; of GPU nodes that of GPUs only."""
    sim = builder.sim
    names = list(sim.dimensions.names)
    allocatable = np.maximum(sim.allocatable, 1)
    share = np.maximum(sim.allocatable - sim.free, 0) / allocatable
    used = share[:, :2].max(axis=1)
    if GPU in names:
        at = names.index(GPU)
        used = np.where(sim.allocatable[:, at] > 0, share[:, at], used)
    return [float(each) for each in used]

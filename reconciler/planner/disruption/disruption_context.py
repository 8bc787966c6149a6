"""What all methods share: limits, rules, and the nodes that are being emptied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import cannot_end
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.disruption.drains.replacement_sets import SetsUnderWay
from reconciler.planner.disruption.limits.ledger import EvictionLedger
from reconciler.planner.disruption.limits.removals import DemandMargin, RemovalQuota, still_draining
from reconciler.planner.disruption.simulator.relocation import Relocation
from reconciler.planner.nodes.drain_taints import (
    is_draining_by_us,
    is_draining_voluntarily,
)
from reconciler.planner.reserved_places import ReservationGuard
from reconciler.planner.rules import Judge, judge_of
from reconciler.planner.settings import FleetSettings
from reconciler.planner.view import ClusterView


@dataclass(slots=True, eq=False)
class DisruptionContext:
    """The limits of one plan, made after the drains of earlier plans have been continued."""

    builder: PlanBuilder
    under_way: Sequence[Relocation]
    removal_quota: RemovalQuota
    demand_margin: DemandMargin
    ledger: EvictionLedger
    reservation_guard: ReservationGuard
    """The places of pending pods, which must not be lost when nodes are replaced."""
    open_nodes: Sequence[tuple[Node, FleetKey]]
    """Our nodes that are not draining, leaving or interrupted, and the fleet of each."""
    sets: SetsUnderWay
    """Decisions of earlier plans to replace several nodes together."""
    draining: frozenset[NodeName]
    """Nodes that are being emptied, by any policy."""
    draining_before: int
    """How many of our nodes carried our taint when planning began, including those ended since."""
    non_empty_draining: int
    """How many draining nodes still have pods, without those whose drain cannot go on."""
    closed: set[NodeName] = field(default_factory=set)
    """Empty nodes that take no pods of others: about to go, waiting, or kept as spares."""
    waiting: set[NodeName] = field(default_factory=set)
    """Empty nodes that wait for their time, their turn, or the pods of a more expensive node."""
    spares: set[NodeName] = field(default_factory=set)
    """Empty nodes that stay as spares of their instance type."""
    unneeded: dict[NodeName, PolicyName] = field(default_factory=dict)
    """Nodes that may go when their time comes, in this order, and the policy of each."""
    timed_for_later: set[NodeName] = field(default_factory=set)
    """Nodes of `not_looked_at` that have a timer: they may leave later."""
    chosen_now: set[NodeName] = field(default_factory=set)
    """Nodes that this plan found may leave later: it starts their timers or soft-taints them."""
    not_looked_at: set[NodeName] = field(default_factory=set)
    """Candidates that this plan had no time to examine."""
    not_kept: dict[NodeName, FleetSettings] = field(default_factory=dict)
    """Nodes with a time limit for pods that keep them (`terminate_after`), and that none keeps."""
    empty_begun: int = 0
    """How many empty nodes this plan begins to remove."""
    non_empty_begun: int = 0
    """How many nodes with pods this plan begins to drain."""
    _judges: dict[tuple[int, bool], Judge] = field(default_factory=dict)
    """By the `id` of a fleet's settings, which the view keeps alive, and by `overdue`."""

    @property
    def view(self) -> ClusterView:
        """Return the facts."""
        return self.builder.view

    @property
    def idle(self) -> set[NodeName]:
        """Return the empty nodes that pods may still be scheduled on, as they carry no taint."""
        return self.waiting | self.spares

    def wait(self, name: NodeName, *, taint: bool = True) -> None:
        """Keep an empty node for now, and give it no pods of other nodes.

        Args:
            name: The node.
            taint: Whether it gets the soft taint; False in the plan that starts its timer.
        """
        self.closed.add(name)
        self.waiting.add(name)
        if taint:
            self.unneeded[name] = "scale-in"

    def non_empty_at_once_max(self, fleet: FleetSettings, policy: PolicyName) -> int:
        """Return how many nodes with pods may be drained at once.

        For a rolling update that is at least its `max_batch`.
        """
        most, rules = fleet.scale_in.non_empty_at_once_max, self.view.settings.rolling_update
        if policy != "rolling-update" or rules is None:
            return most
        return max(most, rules.batch_max)

    def judge(self, fleet: FleetSettings, *, overdue: bool = False) -> Judge:
        """Return the rules on moving pods under the fleet's settings.

        Args:
            fleet: The settings.
            overdue: Whether the node's `terminate_after` has passed.
        """
        key = id(fleet), overdue
        known = self._judges.get(key)
        if known is None:
            terms = terms_of(fleet.scale_in, overdue=overdue)
            known = self._judges[key] = judge_of(terms, self.builder.budgets.coverage, self.view.at)
        return known


def _open_nodes(view: ClusterView) -> Iterator[tuple[Node, FleetKey]]:
    """Yield the nodes of our fleets that are not draining, leaving or interrupted."""
    closed = view.draining | view.inventory.interrupted.keys() | view.inventory.leaving
    for node in view.nodes.values():
        key = view.inventory.fleet_of_node.get(node.name)
        if key is not None and node.name not in closed:
            yield node, key


def make_context(builder: PlanBuilder, under_way: Sequence[Relocation]) -> DisruptionContext:
    """Return the context of a run, with planned actions and drains under way counted in."""
    view = builder.view
    draining, ours = still_draining(builder), view.inventory.fleet_of_node
    return DisruptionContext(
        builder=builder,
        under_way=under_way,
        removal_quota=RemovalQuota(builder),
        demand_margin=DemandMargin(builder),
        ledger=EvictionLedger(view, builder.budgets),
        reservation_guard=ReservationGuard(builder),
        open_nodes=tuple(_open_nodes(view)),
        sets=SetsUnderWay(view),
        draining=draining,
        draining_before=len(view.draining & (ours.keys() | view.inventory.orphans.nodes)),
        non_empty_draining=sum(
            name in ours and _is_being_emptied(view, view.nodes[name], ours[name])
            for name in draining
        ),
    )


def _is_being_emptied(view: ClusterView, node: Node, key: FleetKey) -> bool:
    """Return whether pods are leaving the draining node.

    They are not while a voluntary drain cannot go on, or if a person set the taint.
    """
    if not is_draining_by_us(node) or node.name not in view.nodes_in_use:
        return False
    halted = is_draining_voluntarily(node) and cannot_end(view, node, view.statuses[key])
    return not halted

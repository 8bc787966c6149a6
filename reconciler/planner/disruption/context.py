"""What all methods share: limits, rules, and which nodes are being emptied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import cannot_end
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.disruption.drains.idleness import in_use
from reconciler.planner.disruption.drains.replacement_sets import SetsUnderWay
from reconciler.planner.disruption.limits.ledger import EvictionLedger
from reconciler.planner.disruption.limits.removals import DemandReserve, FleetRoom, still_draining
from reconciler.planner.disruption.simulator.relocation import Relocation
from reconciler.planner.nodes.drain_taints import (
    is_draining,
    is_draining_by_us,
    is_draining_voluntarily,
)
from reconciler.planner.promised import KeptPlaces
from reconciler.planner.rules import Judge, judge_of
from reconciler.planner.settings import FleetSettings
from reconciler.planner.view import ClusterView


@dataclass(slots=True, eq=False)
class DisruptionContext:
    """Holds the limits of one plan; drains that were begun earlier have been dealt with."""

    builder: PlanBuilder
    under_way: Sequence[Relocation]
    room: FleetRoom
    reserve: DemandReserve
    ledger: EvictionLedger
    kept_places: KeptPlaces
    """Places of waiting pods that nodes in the place of others must not take away."""
    sets: SetsUnderWay
    """Decisions of earlier plans to replace several nodes together."""
    draining: frozenset[NodeName]
    """Nodes that are being emptied, by whatever policy."""
    draining_before: int
    """How many of our nodes carried our taint when the plan was made, those that it ends too."""
    non_empty_draining: int
    """How many of our draining nodes still have pods; those whose drain cannot go on left out."""
    closed: set[NodeName] = field(default_factory=set)
    """Empty nodes that are no destinations: about to go, waiting, or kept as spares."""
    waiting: set[NodeName] = field(default_factory=set)
    """Empty nodes that wait for their time, for their turn, or for the pods of a dearer node."""
    spares: set[NodeName] = field(default_factory=set)
    """Empty nodes that stay as spares of their instance type."""
    unneeded: dict[NodeName, PolicyName] = field(default_factory=dict)
    """Nodes that may go when their time comes, in that order, and for which policy."""
    timed_for_later: set[NodeName] = field(default_factory=set)
    """Of the nodes that had no turn in this plan those with a timer: they may leave in time."""
    chosen_now: set[NodeName] = field(default_factory=set)
    """Nodes that may leave later, as this plan finds: their timers start, or they are marked."""
    not_looked_at: set[NodeName] = field(default_factory=set)
    """Candidates whose turn did not come in this plan."""
    empty_begun: int = 0
    """Empty nodes that this plan begins to remove."""
    non_empty_begun: int = 0
    """Nodes with pods that this plan begins to drain."""
    _judges: dict[tuple[int, bool], Judge] = field(default_factory=dict)
    """By identity of a fleet's settings, which the view keeps alive, and for overdue nodes."""

    @property
    def view(self) -> ClusterView:
        """Return the facts."""
        return self.builder.view

    @property
    def idle(self) -> set[NodeName]:
        """Empty nodes that are open to pods: kube-scheduler knows nothing of what they wait for."""
        return self.waiting | self.spares

    def wait(self, name: NodeName, *, mark: bool = True) -> None:
        """Keep an empty node for now; it takes no pods.

        Args:
            name: The node.
            mark: Whether it gets the soft taint; not in the plan that starts its timer.
        """
        self.closed.add(name)
        self.waiting.add(name)
        if mark:
            self.unneeded[name] = "scale-in"

    def non_empty_at_once_max(self, fleet: FleetSettings, policy: PolicyName) -> int:
        """Return how many nodes with pods may be drained at a time.

        A rolling update has its `max_batch`.
        """
        most, rules = fleet.scale_in.non_empty_at_once_max, self.view.settings.rolling_update
        if policy != "rolling-update" or rules is None:
            return most
        return max(most, rules.batch_max)

    def judge(self, fleet: FleetSettings, *, overdue: bool = False) -> Judge:
        """Return the rules on moving pods as the fleet's settings have them.

        Args:
            fleet: The settings.
            overdue: Whether they are about a node whose `terminate_after` has passed.
        """
        key = id(fleet), overdue
        known = self._judges.get(key)
        if known is None:
            terms = terms_of(fleet.scale_in, overdue=overdue)
            known = self._judges[key] = judge_of(terms, self.builder.budgets.coverage, self.view.at)
        return known


def open_nodes(view: ClusterView) -> Iterator[tuple[Node, FleetKey]]:
    """Yield the nodes of our fleets that are neither draining nor leaving nor interrupted."""
    for node in view.nodes.values():
        key = view.inventory.fleet_of_node.get(node.name)
        if key is None or is_draining(node) or node.name in view.inventory.interrupted:
            continue
        if node.name not in view.inventory.leaving:
            yield node, key


def make_context(builder: PlanBuilder, under_way: Sequence[Relocation]) -> DisruptionContext:
    """Return the context of a run: actions planned so far and drains under way are counted in."""
    view = builder.view
    draining, ours = still_draining(builder), view.inventory.fleet_of_node
    return DisruptionContext(
        builder=builder,
        under_way=under_way,
        room=FleetRoom(builder),
        reserve=DemandReserve(builder),
        ledger=EvictionLedger(view, builder.budgets),
        kept_places=KeptPlaces(builder),
        sets=SetsUnderWay(view),
        draining=draining,
        draining_before=sum(
            is_draining(view.nodes[name]) for name in ours.keys() | view.inventory.orphans.nodes
        ),
        non_empty_draining=sum(
            name in ours and _is_being_emptied(view, view.nodes[name], ours[name])
            for name in draining
        ),
    )


def _is_being_emptied(view: ClusterView, node: Node, key: FleetKey) -> bool:
    """Return whether pods leave the draining node.

    They do not while a voluntary drain cannot go on, nor where a person set the taint.
    """
    if not is_draining_by_us(node) or not in_use(view.pods_on.get(node.name, ())):
        return False
    halted = is_draining_voluntarily(node) and cannot_end(view, node, view.statuses[key])
    return not halted

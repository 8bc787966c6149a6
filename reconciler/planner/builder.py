"""PlanBuilder: the only way into a plan.

Policies run one after another. Each reads the ClusterView and what is decided so far, and writes
through the methods here: every target and action carries the reason of its caller, and every new
removal of a node goes through `begin_removal`, which the safety stop checks.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    PolicyName,
    TaintNode,
    TerminateInstance,
    UntaintNode,
    begins_drain,
)
from reconciler.model.cluster import Node
from reconciler.model.errors import InvariantViolated
from reconciler.model.ids import FleetKey, NodeName, PodKey
from reconciler.model.placements import Destination
from reconciler.model.plan import HeadroomPlan, Held, HeldCode, Kept, Placement
from reconciler.model.unplaceable import Unplaceable
from reconciler.planner.builder_values import KeptPod, Removal, TargetReason
from reconciler.planner.fleet_sizes import FleetSizes
from reconciler.planner.fleets.instances.stuck_ends import StuckEndLedger
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from reconciler.planner.purchases import Purchases
from reconciler.planner.reservations import PlannedNode, Reservation, WaitingClass
from reconciler.planner.view import ClusterView


class PlanBuilder:
    """A plan in progress.

    Args:
        view: The facts.
        sim: The what-if cluster in its current state.
        waiting: The demand, by priority, then largest first.
        budgets: What PodDisruptionBudgets still allow to all policies together.
        stuck_ends: How many instances that never joined may still be ended.
    """

    def __init__(
        self,
        view: ClusterView,
        sim: Simulation,
        waiting: Sequence[WaitingClass],
        budgets: BudgetLedger,
        stuck_ends: StuckEndLedger,
    ) -> None:
        self.view = view
        self.sim = sim
        self.waiting = waiting
        self.budgets = budgets
        self.stuck_ends = stuck_ends
        self.purchases = Purchases()
        self.sizes = FleetSizes(view)
        self._target_reasons: dict[FleetKey, list[TargetReason]] = {}
        self._new_nodes: dict[FleetKey, int] = {}
        self._replacements: dict[FleetKey, int] = {}
        self._planned_nodes: dict[int, PlannedNode] = {}
        self._reservations: list[Reservation] = []
        self._used_rows: set[int] = set()
        self._kept_free: dict[int, str] = {}
        self._headroom_places: list[tuple[PodClass, int, int]] = []
        self._headroom: list[HeadroomPlan] = []
        self._actions: list[AnyAction] = []
        self._removals: list[Removal] = []
        self._placements: list[Placement] = []
        self._unplaceable: list[Unplaceable] = []
        self._held: list[Held] = []
        self._kept: list[Kept] = []
        self._kept_pods: dict[PodKey, KeptPod] = {}
        self._on_demand: dict[NodeName, Kept] = {}

    # ---- what is decided so far -----------------------------------------------------------

    @property
    def targets(self) -> Mapping[FleetKey, int]:
        """Return the target capacities as planned so far; they start as they are now."""
        return self.sizes.targets

    @property
    def planned_nodes(self) -> Mapping[int, PlannedNode]:
        """Return the planned nodes by row."""
        return self._planned_nodes

    @property
    def reservations(self) -> Sequence[Reservation]:
        """Return the places of demand."""
        return self._reservations

    @property
    def used_rows(self) -> AbstractSet[int]:
        """Return the rows on which this plan reserved something."""
        return self._used_rows

    @property
    def kept_free(self) -> Mapping[int, str]:
        """Return the rows with room that is kept free, by sector: some of `used_rows`."""
        return self._kept_free

    @property
    def headroom_places(self) -> Sequence[tuple[PodClass, int, int]]:
        """Return the pieces in that room: a pod like one of them, its row, their number there."""
        return self._headroom_places

    @property
    def headroom(self) -> Sequence[HeadroomPlan]:
        """Return the result for each item of headroom."""
        return self._headroom

    @property
    def actions(self) -> Sequence[AnyAction]:
        """Return the actions so far, without changes of targets and new removals."""
        return self._actions

    @property
    def removals(self) -> Sequence[Removal]:
        """Return the removals that policies want to begin; the safety stop decides at the end."""
        return self._removals

    @property
    def placements(self) -> Sequence[Placement]:
        """Return where the pods go that policies move."""
        return self._placements

    @property
    def unplaceable(self) -> Sequence[Unplaceable]:
        """Return the pods that get no place, and why."""
        return self._unplaceable

    @property
    def held(self) -> Sequence[Held]:
        """Return what would be removed and is held by a safety measure."""
        return self._held

    @property
    def kept(self) -> Sequence[Kept]:
        """Return why nodes stay, by name: the last reason noted on each node.

        That a node is not Ready is given only if there is no other reason.
        """
        found: dict[NodeName, Kept] = {}
        for each in self._kept:
            if each.code != "not-ready" or each.node not in found:
                found[each.node] = each
        return sorted((self._on_demand | found).values())

    @property
    def on_demand(self) -> Mapping[NodeName, Kept]:
        """Return the on-demand nodes whose pods are not moved to spot nodes, and why."""
        return self._on_demand

    @property
    def kept_pods(self) -> Mapping[PodKey, KeptPod]:
        """Return the pods that a policy of the descheduler proposed and that stay."""
        return self._kept_pods

    def size_of(self, key: FleetKey) -> int:
        """Return how many nodes a fleet will have; a new one comes on top of that."""
        return self.sizes.size_of(key)

    def new_nodes(self, key: FleetKey) -> int:
        """Return how many nodes the plan asks the fleet for."""
        return self._new_nodes.get(key, 0) + self._replacements.get(key, 0)

    def purchase_reasons(self, key: FleetKey) -> str:
        """Return why pending pods have raised the fleet's target; empty if they have not."""
        reasons = self._target_reasons.get(key, ())
        return "; ".join(reason.because for reason in reasons if reason.policy == "scale-up")

    def target_reason(self, key: FleetKey) -> TargetReason:
        """Return the policy that changed the target first, a minimum last, and all the reasons.

        Raises:
            InvariantViolated: The target was not changed.
        """
        target_reasons = self._target_reasons.get(key)
        if not target_reasons:
            raise InvariantViolated(
                f"fleet {key}",
                "its target changes and no policy says why",
                "nothing was done; please report it with a snapshot",
            )
        ordered = sorted(target_reasons, key=lambda each: each.policy == "min-capacity")
        return TargetReason(ordered[0].policy, "; ".join(each.because for each in ordered))

    def reserved_on_nodes(self, waiting: WaitingClass) -> int:
        """Return how many pods of the class have a place reserved on existing nodes."""
        return sum(
            amount
            for reservation in self._reservations
            if reservation.waiting is waiting
            for row, amount in zip(reservation.rows, reservation.amounts, strict=True)
            if row not in self._planned_nodes
        )

    def row_name(self, row: int) -> NodeName:
        """Return the node of a row."""
        return NodeName(self.sim.names[row])

    def destination(self, row: int) -> Destination:
        """Return a row as placements name it."""
        planned = self._planned_nodes.get(row)
        if planned is None:
            return Destination(node=self.row_name(row))
        return Destination(
            fleet=planned.key.name,
            region=planned.key.region,
            launching=planned.number if planned.launching else None,
            new_node=None if planned.launching else planned.number,
        )

    # ---- targets --------------------------------------------------------------------------

    def raise_target(self, key: FleetKey, to: int, policy: PolicyName, because: str) -> None:
        """Raise a target, or leave it as high as it is.

        If a policy changes the target again, its reason replaces the one given before; the reasons
        of different policies are joined.
        """
        self.sizes.set_target(key, to)
        reasons = self._target_reasons.setdefault(key, [])
        reasons[:] = [reason for reason in reasons if reason.policy != policy]
        reasons.append(TargetReason(policy, because))

    def lower_target(self, key: FleetKey, to: int, policy: PolicyName, because: str) -> None:
        """Lower a target by nodes that were asked for and have not been launched."""
        self.sizes.set_target(key, to)
        self._target_reasons[key] = [TargetReason(policy, because)]

    def ask_for_replacements(
        self, key: FleetKey, count: int, policy: PolicyName, because: str
    ) -> None:
        """Ask for nodes that replace others, which leave once these have joined."""
        self._replacements[key] = self._replacements.get(key, 0) + count
        self.raise_target(key, self.size_of(key) + count, policy, because)

    # ---- places ---------------------------------------------------------------------------

    def plan_launching(self, key: FleetKey, rows: Sequence[int]) -> None:
        """Note that these rows are launching nodes of the fleet."""
        for number, row in enumerate(rows):
            self._planned_nodes[row] = PlannedNode(key=key, number=number, launching=True)

    def plan_new_nodes(self, key: FleetKey, rows: Sequence[int]) -> None:
        """Note that these rows are the next nodes that the plan asks the fleet for."""
        first = self._new_nodes.get(key, 0)
        self._new_nodes[key] = first + len(rows)
        for number, row in enumerate(rows, first):
            self._planned_nodes[row] = PlannedNode(key=key, number=number, launching=False)

    def reserve(self, waiting: WaitingClass, rows: Sequence[int], amounts: Sequence[int]) -> None:
        """Reserve places for the next pods of the class: `amounts[i]` on `rows[i]`."""
        if not rows:
            return
        self._used_rows.update(rows)
        taken = waiting.take(sum(amounts))
        self._reservations.append(
            Reservation(waiting=waiting, pods=taken, rows=rows, amounts=amounts)
        )

    def reserve_moves(self, rows: Iterable[int]) -> None:
        """Note that pods of draining nodes move to these rows."""
        self._used_rows.update(rows)

    def keep_free(self, sector: str, pod_class: PodClass, taken: Sequence[tuple[int, int]]) -> None:
        """Note room that is kept for new pods; the simulation has it taken already.

        Args:
            sector: The sector whose headroom it is.
            pod_class: A pod of the size of one piece.
            taken: Rows, and how many pieces are placed on each.
        """
        for row, amount in taken:
            self._used_rows.add(row)
            self._kept_free[row] = sector
            self._headroom_places.append((pod_class, row, amount))

    def note_headroom(self, found: HeadroomPlan) -> None:
        """Note how much of an item of headroom there is, or will be."""
        self._headroom.append(found)

    def refuse(self, pod: Unplaceable) -> None:
        """Note a pod that gets no place, and why."""
        self._unplaceable.append(pod)

    # ---- nodes ----------------------------------------------------------------------------

    def block(self, node: Node, code: str, detail: str, until: datetime | None = None) -> None:
        """Note why the node stays, and until when, if time alone ends that."""
        self._kept.append(Kept(node=node.name, code=code, detail=detail, until=until))

    def keep_pod(self, pod: PodKey, kept: KeptPod) -> None:
        """Note why a pod stays that the descheduler would evict; the first reason counts."""
        self._kept_pods.setdefault(pod, kept)

    def stays_on_demand(
        self, node: Node, code: str, detail: str, until: datetime | None = None
    ) -> None:
        """Note why the node's pods are not moved to spot nodes; other reasons come first."""
        kept = Kept(node=node.name, code=code, detail=detail, until=until)
        self._on_demand[node.name] = kept

    def hold(self, code: HeldCode, node: str = "", instance: str = "", detail: str = "") -> None:
        """Note which safety measure keeps a node, or an instance that never joined."""
        held = Held(node=NodeName(node), code=code, instance=instance, detail=detail)
        self._held.append(held)

    def change_nodes(self, *actions: AnnotateNode | TaintNode | UntaintNode) -> None:
        """Annotate nodes and add or remove soft taints; this begins no drain.

        Raises:
            InvariantViolated: One of the actions would begin a drain past the safety stop.
        """
        if any(map(begins_drain, actions)):
            raise InvariantViolated(
                "the planner",
                "a drain would begin past the safety stop",
                "nothing was done; please report it with a snapshot",
            )
        self._actions += actions

    def begin_removal(self, removal: Removal) -> None:
        """Begin to remove a node or an instance, if the safety stop agrees at the end."""
        self._removals.append(removal)

    def change_removals(self, removals: Iterable[Removal]) -> None:
        """Replace what policies want to begin to remove."""
        self._removals = list(removals)

    def interrupt(self, actions: Iterable[AnyAction]) -> None:
        """Empty a node that EC2 takes back, without the safety stop: the node goes in any case."""
        self._actions += actions

    def continue_drain(
        self, evictions: Iterable[EvictPod | DeletePod], places: Iterable[Placement]
    ) -> None:
        """Evict pods of a node whose drain was begun by an earlier plan."""
        self._actions += evictions
        self._placements += places

    def evict(self, action: EvictPod, place: Placement | None) -> None:
        """Evict a pod from a node that stays, and reserve its place if it needs one."""
        self._actions.append(action)
        if place is not None:
            self._placements.append(place)

    def cancel_drain(self, actions: Iterable[AnnotateNode | UntaintNode]) -> None:
        """Give a node back: remove its taint, its timers and the marks of its drain."""
        self._actions += actions

    def finish_drain(self, action: TerminateInstance) -> None:
        """End the instance of a drained node; the target is lowered if the action says so."""
        if action.precondition != "orphan":  # whose fleet is gone, though one may have its name
            key = FleetKey(name=action.fleet, region=action.region)
            self.sizes.end_node(key, action.node, decrement=action.decrement)
        self._actions.append(action)

    def delete_terminated(self, action: DeleteNode) -> None:
        """Delete the Node object of an instance that is terminated."""
        self._actions.append(action)

    # ---- the safety stop ------------------------------------------------------------------

    def settle_removals(self, *, suspicious: bool, also: HeldCode) -> None:
        """Begin all removals, or hold every one of them.

        Args:
            suspicious: Whether they are so many that a second full list has to agree first.
            also: The code under which instances are held that count as removals too.
        """
        if not suspicious:
            for removal in self._removals:
                if lowered := removal.targets_lowered:
                    self.sizes.set_target(removal.key, self.targets[removal.key] - lowered)
                self._actions += removal.actions
                self._placements += removal.placements
            return
        self._held = [replace(h, code="safety-stop") if h.code == also else h for h in self._held]
        for removal in self._removals:
            instance = "" if removal.node is not None else removal.instance or ""
            self.hold("safety-stop", removal.node or "", instance)

"""Which nodes Karpenter would disrupt to save money: empty ones, several, or one."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.node_rows import node_row
from reconciler.planner.rules.annotations import forbidding, keeps
from reconciler.simulation.peers.access import reschedulable
from reconciler.simulation.peers.claims import (
    Solution,
    Solver,
    ToPlace,
    cheapest,
    prices_of,
)

Method = Literal["empty", "several", "one"]
METHODS: tuple[Method, ...] = ("empty", "several", "one")
SEVERAL_MAX = 100
REASON = "consolidation"
_GONE = Taint(key="karpenter.sh/disrupted", value="", effect="NoSchedule")
MANY_ROUNDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Facts for Karpenter's model that the what-if cluster does not hold."""

    deleting: frozenset[NodeName]
    nominated: frozenset[NodeName]
    young: frozenset[NodeName]
    """Nodes with a pod event less than `consolidateAfter` ago."""
    budget_percent: int
    available: Collection[FleetKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A decision."""

    method: Method
    nodes: tuple[Node, ...]
    replacement: FleetKey | None = None
    choices: frozenset[FleetKey] = frozenset()
    """All groups that the replacement could come from."""
    nominated: tuple[NodeName, ...] = ()
    reason: str = REASON


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    node: Node
    key: FleetKey
    nano_usd: int
    pods: list[Pod]
    cost: float
    """1 for the node, plus the eviction cost of its pods."""


class Consolidation:
    """One evaluation of the cluster.

    Args:
        builder: The what-if cluster.
        situation: The other facts.
    """

    def __init__(self, builder: PlanBuilder, situation: Situation) -> None:
        self._builder, self._situation = builder, situation
        self._prices = prices_of(builder)
        self._waiting = [(pod, w.pod_class) for w in builder.waiting for pod in w.pods]
        self._leaving = lift(builder, situation.deleting)
        self._rows = builder.sim.rows
        self._candidates = self._all_candidates()

    def decide(self, method: Method) -> Command | None:
        """Return what the method would do now."""
        allowed = self._allowed()
        if method == "empty":
            candidates = self._within([c for c in self._candidates if not c.pods], allowed)
            return (
                Command(method=method, nodes=tuple(c.node for c in candidates))
                if candidates
                else None
            )
        used = [c for c in self._candidates if c.pods]
        if method == "several":
            return self._several(self._within(used, allowed)[:SEVERAL_MAX])
        for candidate in used:
            if allowed[self._sector(candidate)] > 0:
                command = self._command("one", [candidate])
                if command is not None:
                    return command
        return None

    def validated(self, command: Command) -> Command | None:
        """Return the decision as it can be executed now; None when it is no longer valid."""
        names = {node.name for node in command.nodes}
        still = [c for c in self._candidates if c.node.name in names]
        if command.method == "empty":
            still = self._within([c for c in still if not c.pods], self._allowed())
            nodes = tuple(c.node for c in still)
            return Command(method="empty", nodes=nodes) if nodes else None
        if len(still) < len(names) or len(self._within(still, self._allowed())) < len(still):
            return None
        if not all(c.pods for c in still):
            return None
        solution = self._without(still)
        if solution is None or len(solution.claims) != (command.replacement is not None):
            return None
        if solution.claims and not command.choices <= set(solution.claims[0].offers):
            return None
        return command

    # ---- candidates -----------------------------------------------------------------------

    def _all_candidates(self) -> list[_Candidate]:
        """Return nodes that may be disrupted, ordered by savings per disruption."""
        view, situation = self._builder.view, self._situation
        candidates = []
        for name, node in view.nodes.items():
            key = view.inventory.fleet_of_node.get(name)
            kept = situation.deleting | situation.nominated | situation.young
            if key is None or name in kept or name in view.inventory.leaving or not node.ready:
                continue
            pods = [pod for pod in view.pods_on.get(name, ()) if not pod.finished]
            if forbidding(node.annotations) or any(keeps(pod, view.at) for pod in pods):
                continue
            moving = reschedulable(pods)
            if self._builder.budgets.refusal(moving, MANY_ROUNDS) is not None:
                continue
            cost = 1.0 + sum(max(0.0, _eviction_cost(pod)) for pod in moving)
            price = self._prices[key]
            candidates.append(
                _Candidate(node=node, key=key, nano_usd=price, pods=moving, cost=cost)
            )
        return sorted(candidates, key=lambda c: (-c.nano_usd / c.cost, c.node.name))

    def _sector(self, candidate: _Candidate) -> str:
        return self._builder.view.statuses[candidate.key].settings.sector

    def _allowed(self) -> Counter[str]:
        """Return how many more nodes of each sector the budget allows to disrupt."""
        view = self._builder.view
        there: Counter[str] = Counter()
        disrupted: Counter[str] = Counter()
        for name, key in view.inventory.fleet_of_node.items():
            if name in view.inventory.leaving:
                continue
            sector = view.statuses[key].settings.sector
            there[sector] += 1
            disrupted[sector] += name in self._situation.deleting or not view.nodes[name].ready
        percent = self._situation.budget_percent
        return Counter({s: -(-count * percent // 100) - disrupted[s] for s, count in there.items()})

    def _within(self, found: Sequence[_Candidate], allowed: Counter[str]) -> list[_Candidate]:
        """Return as many of them as the budget allows, in their order."""
        left, taken = Counter(allowed), []
        for candidate in found:
            sector = self._sector(candidate)
            if left[sector] > 0:
                left[sector] -= 1
                taken.append(candidate)
        return taken

    # ---- what would follow ----------------------------------------------------------------

    def _several(self, found: Sequence[_Candidate]) -> Command | None:
        """Return the most candidates, in their order, that can go together, by bisection."""
        low, high = 1, len(found) - 1
        best: Command | None = None
        while low <= high:
            middle = (low + high) // 2
            command = self._command("several", found[: middle + 1])
            if command is not None:
                best, low = command, middle + 1
            else:
                high = middle - 1
        return best

    def _command(self, method: Method, found: Sequence[_Candidate]) -> Command | None:
        """Remove the nodes, or replace them by one cheaper node; None when neither is possible."""
        solution = self._without(found)
        if solution is None:
            return None
        names = [row for row in solution.rows if row < len(self._builder.view.nodes)]
        command = Command(
            method=method,
            nodes=tuple(c.node for c in found),
            nominated=tuple(self._builder.row_name(row) for row in names),
        )
        if not solution.claims:
            return command
        choices = self._cheaper(found, solution.claims[0].offers, several=method == "several")
        if not choices:
            return None
        return Command(
            method=method,
            nodes=command.nodes,
            nominated=command.nominated,
            replacement=cheapest(self._builder, choices),
            choices=frozenset(choices),
        )

    def _cheaper(
        self, found: Sequence[_Candidate], offers: Sequence[FleetKey], *, several: bool
    ) -> list[FleetKey]:
        """Return the cheaper groups, only spot ones if there are any; none if all nodes are."""
        statuses = self._builder.view.statuses
        spot = [key for key in offers if statuses[key].settings.spot]
        if spot and all(statuses[c.key].settings.spot for c in found):
            return []
        limit = sum(c.nano_usd for c in found)
        if several:
            types = {_type_of(self._builder, c.key): c.nano_usd for c in found}
            same = [types[t] for k in offers if (t := _type_of(self._builder, k)) in types]
            limit = min([limit, *same])
        left = [key for key in offers if self._prices[key] < limit]
        only_spot = [key for key in left if key in spot]
        return only_spot or left

    def _without(self, found: Sequence[_Candidate]) -> Solution | None:
        """Return where all pods would go without these nodes; None when they do not fit."""
        builder, sim, situation = self._builder, self._builder.sim, self._situation
        view = builder.view
        mark = sim.fork()
        moved: list[ToPlace] = []
        for candidate in found:
            moved += lift(builder, [candidate.node.name], candidate.pods)
            tainted = (*candidate.node.taints, _GONE)
            row = view.row_of[candidate.node.name]
            sim.set_schedulable(row, node_row(candidate.node, taints=tainted, closed=True))
        young = np.zeros(self._rows, dtype=np.bool_)
        young[[view.row_of[name] for name in situation.young if name in view.row_of]] = True
        movers = {pod.key.uid for pod, _ in moved}
        solver = Solver(builder, situation.available)
        among = np.ones(self._rows, dtype=np.bool_)
        solution = solver.solve([*self._waiting, *self._leaving, *moved], among, young, movers)
        for candidate in found:
            sim.set_schedulable(view.row_of[candidate.node.name], node_row(candidate.node))
        sim.revert(mark)
        stranded = any(pod.key.uid in movers for pod in solution.unplaced)
        unready = any(
            pod.key.uid in movers
            for row, pods in solution.rows.items()
            if row >= len(view.nodes)
            for pod in pods
        )
        return None if stranded or unready or len(solution.claims) > 1 else solution


def lift(
    builder: PlanBuilder, names: Collection[NodeName], pods: Sequence[Pod] | None = None
) -> list[ToPlace]:
    """Remove the pods that must run elsewhere from these nodes and return them."""
    view, found = builder.view, []
    for name in sorted(names):
        if name not in view.nodes:
            continue
        moving = reschedulable(view.pods_on.get(name, ())) if pods is None else pods
        row = np.array([view.row_of[name]])
        for pod_class, members in view.table.grouped(moving):
            builder.sim.place(pod_class, row, np.array([-len(members)]))
            found += [(pod, pod_class) for pod in members]
    return found


def _type_of(builder: PlanBuilder, key: FleetKey) -> str:
    return builder.view.statuses[key].settings.options[0].instance_type


def _eviction_cost(pod: Pod) -> float:
    """Return 1, more or less by the pod's priority."""
    return min(10.0, max(-10.0, 1.0 + pod.spec.priority / 2**25))

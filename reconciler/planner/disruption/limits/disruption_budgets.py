"""Disruption budgets: how many nodes may be disrupted at a time, by reason and time window.

A budget belongs to the cluster, a sector or a fleet. All that match a node apply; the strictest
decides. Nodes that drain, are not Ready or wait for their replacement use up a budget, whatever the
reason. Model: Karpenter's NodePool budgets (`spec.disruption.budgets`, v1), which also stop
counting a node once EC2 ends its instance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import counted_noun
from reconciler.planner.calendar import after_schedule, in_window_opened_on
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption_settings import DisruptionBudget, DisruptionReason
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.nodes.starting import is_joining
from reconciler.planner.view import ClusterView


@dataclass(slots=True, kw_only=True)
class _InForce:
    """A budget that is in force now, with the fleets of its scope."""

    budget: DisruptionBudget
    scope: str
    """The scope for people: `the cluster`, `sector primary`, `fleet primary-small`."""
    fleets: frozenset[FleetKey]
    allowed: int
    used: int
    """How many nodes are disrupted."""
    chosen: int = 0
    """Nodes that a rolling update has chosen and that are drained next."""

    def limits(self, key: FleetKey, reason: DisruptionReason) -> bool:
        return key in self.fleets and reason in self.budget.reasons


class DisruptionBudgets:
    """Decides what each budget still allows, given the disrupted nodes and what this plan begins.

    Args:
        view: The facts.
    """

    def __init__(self, view: ClusterView) -> None:
        self._disrupted = {s.key: _disrupted(view, s) for s in view.inventory.fleets}
        self._chosen: dict[FleetKey, set[NodeName]] = {s.key: set() for s in view.inventory.fleets}
        self._in_force = [
            self._opened(budget, scope, statuses)
            for scope, budgets, statuses in _scopes(view)
            for budget in budgets
            if is_in_force(budget, view.at, view.settings.timezone)
        ]
        for status in view.inventory.fleets:
            # While rolling updates are frozen, their chosen nodes must not keep all other nodes.
            if not self.allow_none(status.key, "drifted"):
                for name in _chosen(view, status):
                    self.choose(status.key, name)

    def _opened(
        self, budget: DisruptionBudget, scope: str, statuses: Sequence[FleetStatus]
    ) -> _InForce:
        return _InForce(
            budget=budget,
            scope=scope,
            fleets=frozenset(status.key for status in statuses),
            allowed=budget.allowed(sum(len(status.nodes) for status in statuses)),
            used=sum(self._disrupted[status.key] for status in statuses),
        )

    @property
    def chosen(self) -> frozenset[NodeName]:
        """Return the nodes that a rolling update has chosen and that are drained next.

        Nodes that a budget of 0 keeps are left out.
        """
        return frozenset().union(*self._chosen.values())

    def blocker(
        self, key: FleetKey, reason: DisruptionReason, node: NodeName | None = None
    ) -> Blocker | None:
        """Return the budget that keeps one more node of the fleet; None if all allow it.

        Args:
            key: The fleet.
            reason: Why the node would be disrupted.
            node: The node. A chosen node has its place: other chosen nodes do not keep it.
        """
        has_place = node in self._chosen[key]
        for each in self._in_force:
            used = each.used + (0 if has_place else each.chosen)
            if each.limits(key, reason) and used >= each.allowed:
                nodes = counted_noun(each.allowed, "node")
                detail = (
                    f"the disruption budget of {each.scope} ({each.budget}) allows {nodes} at a "
                    f"time, and {used} of them are disrupted"
                )
                return Blocker("disruption-budget", detail)
        return None

    def allow_none(self, key: FleetKey, reason: DisruptionReason) -> bool:
        """Return whether a budget of 0 keeps every node of the fleet."""
        return any(each.limits(key, reason) and not each.allowed for each in self._in_force)

    def take(self, key: FleetKey, node: NodeName | None = None) -> None:
        """Count one more node of the fleet as disrupted by this plan; a chosen one only once."""
        was_chosen = node in self._chosen[key]
        self._chosen[key].discard(node)
        for each in self._in_force:
            if key in each.fleets:
                each.used += 1
                each.chosen -= was_chosen

    def choose(self, key: FleetKey, node: NodeName) -> None:
        """Count one more node as chosen by a rolling update."""
        self._chosen[key].add(node)
        for each in self._in_force:
            if key in each.fleets:
                each.chosen += 1


def is_in_force(budget: DisruptionBudget, at: datetime, timezone: str) -> bool:
    """Return whether the budget is in force at `at`, by window or schedule; True without both."""
    local = at.astimezone(ZoneInfo(timezone))
    if budget.schedule is not None:
        return after_schedule(local, budget.schedule, budget.duration_seconds)
    return in_window_opened_on(local, budget.starts, budget.ends, budget.weekdays)


def _scopes(
    view: ClusterView,
) -> Iterable[tuple[str, Sequence[DisruptionBudget], Sequence[FleetStatus]]]:
    """Yield each scope with its budgets and its fleets, a fleet per region."""
    statuses = view.inventory.fleets
    named: dict[tuple[str, str], list[FleetStatus]] = {}
    for status in statuses:
        named.setdefault((status.settings.sector, status.key.name), []).append(status)
    yield "the cluster", view.settings.disruption_budgets, statuses
    for sector in view.settings.sectors:
        own = [status for status in statuses if status.settings.sector == sector.name]
        yield f"sector {sector.name}", sector.disruption_budgets, own
        for fleet in sector.fleets:
            of_fleet = named.get((sector.name, fleet.name), [])
            yield f"fleet {fleet.name}", fleet.disruption_budgets, of_fleet


def _disrupted(view: ClusterView, status: FleetStatus) -> int:
    """Return how many nodes of a fleet drain or are not Ready.

    A node that is still starting, or never took a pod, does not count. One whose instance EC2 ends
    no longer counts, unless a lifecycle hook holds the instance while its pods leave.
    """
    interrupted, owners = view.inventory.interrupted, view.inventory.fleet_of_node
    held = interrupted.keys() - {node.name for node in status.nodes} if interrupted else ()
    emptied = sum(owners.get(name) == status.key for name in held)
    return emptied + sum(_is_disrupted(view, node) for node in status.nodes)


def _is_disrupted(view: ClusterView, node: Node) -> bool:
    if node.name in view.draining or node.name in view.inventory.interrupted:
        return True
    if node.ready or node.name in view.inventory.stuck_nodes:
        return False
    instance = view.inventory.instance_of_node.get(node.name)
    return not is_joining(node, instance, view.at, view.settings)


def _chosen(view: ClusterView, status: FleetStatus) -> set[NodeName]:
    """Return the nodes in the batch of a rolling update of the fleet that are not disrupted yet."""
    return {
        node.name
        for node in status.nodes
        if _is_next(view, status, node) and not _is_disrupted(view, node)
    }


def _is_next(view: ClusterView, status: FleetStatus, node: Node) -> bool:
    """Return whether the node's replacement has joined or may be on its way.

    While the fleet cannot give one the node does not keep others: it stays in use until then, and
    the budgets are asked again before it drains.
    """
    outdated = view.inventory.outdated.get(node.name)
    if outdated is None or not outdated.has_batch:
        return False
    if not outdated.waits:
        return True
    if status.unavailable:
        return False
    return view.at - outdated.since < timedelta(seconds=view.settings.instance_init_seconds)

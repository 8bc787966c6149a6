"""What limits all removals together: min_capacity, demand that would come back, the safety stop."""

from collections.abc import Container, Iterator, Mapping
from collections.abc import Set as AbstractSet

import numpy as np

from reconciler.model.actions import (
    REPLACEMENT_ASKED,
    AnyAction,
    TerminateInstance,
    ends_drain,
)
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.snapshot import CloudState
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.attempts import REPLACEMENT_COUNTS_FOR, read_attempts
from reconciler.planner.fleets.instances.in_service import in_service
from reconciler.planner.fleets.instances.stuck_ends import STUCK_CAP
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.starting import is_joining, takes_pods
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.filters import resources
from reconciler.planner.safety_stop import is_suspicious
from reconciler.planner.view import ClusterView


def settle_removals(builder: PlanBuilder) -> None:
    """Begin all that policies want to remove, or nothing when that is suspiciously much.

    Everything looking empty is more often a broken list than an empty cluster: a second full
    list has to agree. Of instances that never joined it lifts nothing by itself: what proves the
    cluster and the limits of `stuck_ends` hold beside it, and those over the limits count here.
    """
    view = builder.view
    ours = len(view.inventory.fleet_of_node)
    over = sum(each.code == STUCK_CAP for each in builder.held)
    suspicious = is_suspicious(len(builder.removals) + over, ours, view.snapshot)
    builder.settle_removals(suspicious=suspicious, also=STUCK_CAP)


def target_may_fall(builder: PlanBuilder, key: FleetKey) -> bool:
    """Return whether a failed new node is given up with its part of the target.

    It is when the rolling update that asked for it was halted: the fleet would only launch another
    one that fails. A target below what EC2 holds has been lowered for it already.
    """
    view = builder.view
    update, status = view.inventory.updates.get(key), view.statuses[key]
    falling = sum(
        isinstance(action, TerminateInstance) and action.decrement
        for removal in builder.removals
        if removal.key == key
        for action in removal.actions
    )
    if update is None or not update.halted or builder.targets[key] - falling <= status.min:
        return False
    return builder.targets[key] >= status.provided


def still_draining(builder: PlanBuilder) -> frozenset[NodeName]:
    """Return nodes with our taint that this plan neither ends nor gives back."""
    done = {name for name in map(_node_done_with, builder.actions) if name is not None}
    return frozenset(
        node.name
        for node in builder.view.nodes.values()
        if is_draining(node) and node.name not in done
    )


def _node_done_with(action: AnyAction) -> NodeName | None:
    """Return the node whose drain the action ends; None when it ends none."""
    if isinstance(action, TerminateInstance) or ends_drain(action):
        return action.node
    return None


class FleetRoom:
    """Says how many nodes a fleet can do without: its target less what drains less its minimum.

    Nodes that this plan ends have lowered the target already; nodes that it gives back still
    count as draining, as the taint may not come off. Replacements do not count: their fleet's
    target stays. A fleet that has more nodes than its target asks for (somebody lowered it, and
    EC2 ends none) can do without those too.

    The target includes what EC2 owes, which may never come. So the minimum is held against the
    nodes that take pods as well: a fleet that has no more of these can do without none of them.

    One place is kept for each node in whose place another was asked for: taken by an idle node, it
    would have to be asked for again, and again.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        ended = {a.node for a in builder.actions if isinstance(a, TerminateInstance)}
        self._left = {
            status.key: max(
                builder.targets[status.key],
                status.joined - sum(node.name in ended for node in status.nodes),
            )
            - sum(node.name not in ended for node in status.draining)
            - status.min
            for status in builder.view.inventory.fleets
        }
        self._kept = {key: _replaced(builder.view, key) - ended for key in self._left}
        gone = ended | {n.name for n in builder.view.nodes.values() if is_draining(n)}
        view, cloud = builder.view, builder.view.snapshot.cloud
        self._there = {
            status.key: {
                node.name
                for node in _in_service(view, status, gone, cloud)
                if takes_pods(node, view.settings)
            }
            for status in builder.view.inventory.fleets
            if status.min
        }
        """Of fleets with a minimum the nodes that take pods and stay."""
        self._min = {status.key: status.min for status in builder.view.inventory.fleets}

    def may_leave(self, key: FleetKey, name: NodeName) -> bool:
        """Return whether the node may go now."""
        there = self._there.get(key, ())
        held = name in there and len(there) <= self._min[key]
        return self.may_leave_in_time(key, name) and not held

    def may_leave_in_time(self, key: FleetKey, name: NodeName) -> bool:
        """Return whether the node may go when all that its fleet is owed has come."""
        kept = self._kept[key]
        return self._left[key] > (0 if name in kept else len(kept))

    def left_for_replaced(self, key: FleetKey) -> int:
        """Return how many more nodes the fleet can do without in time, if they are replaced."""
        return self._left[key]

    @property
    def left(self) -> Mapping[FleetKey, int]:
        """Return how many more nodes each fleet can do without beside those that are replaced."""
        found = {key: left - len(self._kept[key]) for key, left in self._left.items()}
        for key, there in self._there.items():
            found[key] = min(found[key], len(there) - self._min[key])
        return found

    def leave(self, key: FleetKey, name: NodeName) -> None:
        """Count one more node that goes."""
        self.wait(key, name)
        self._there.get(key, set()).discard(name)

    def wait(self, key: FleetKey, name: NodeName) -> None:
        """Count one more node that goes when what its fleet is owed has come."""
        self._left[key] -= 1
        self._kept[key] -= {name}


def minimum_stays(
    builder: PlanBuilder, status: FleetStatus, undecided: AbstractSet[NodeName]
) -> bool:
    """Return whether the nodes that have joined and stay are as many as the fleet's minimum.

    Nodes that this plan gives back stay, and so does a node that is not Ready: a drain that goes
    on is not given up for that.

    Args:
        builder: The plan.
        status: The fleet.
        undecided: Draining nodes that this plan may still give back: they stay, too.
    """
    if not status.min:
        return True
    ended = {a.node for a in builder.actions if isinstance(a, TerminateInstance)}
    gone = (still_draining(builder) - undecided) | ended
    # One answer that leaves an instance out gives no drain back.
    return sum(1 for _ in _in_service(builder.view, status, gone, None)) >= status.min


def _in_service(
    view: ClusterView,
    status: FleetStatus,
    gone: Container[NodeName | None],
    cloud: CloudState | None,
) -> Iterator[Node]:
    """Yield the nodes of the fleet's target that have joined, except those that go.

    Args:
        view: The cluster.
        status: The fleet.
        gone: Nodes that go.
        cloud: What EC2 answered; None: a node counts whether EC2 shows its instance or not.
    """
    inventory = view.inventory
    shown, instances = inventory.regions_shown, inventory.instance_of_node
    for node in in_service(status.nodes, status.key, shown, instances, cloud):
        stays = node.name not in gone and node.name not in inventory.interrupted
        instance = instances.get(node.name)
        if stays and not is_joining(node, instance, view.at, view.settings):
            yield node


def _replaced(view: ClusterView, key: FleetKey) -> frozenset[NodeName]:
    """Return nodes of the fleet that do not drain yet, and in whose place others were asked for.

    Those of a batch wait for their new nodes as long as the batch lasts; the others for so long as
    what was asked for in their place may need to come and to take their pods.
    """
    found: set[NodeName] = set()
    for node in view.statuses[key].nodes:
        outdated = view.inventory.outdated.get(node.name)
        if outdated is None or outdated.only_for_cheaper_spot or is_draining(node):
            continue
        noted = node.annotations.get(REPLACEMENT_ASKED, "")
        if outdated.has_batch or read_attempts(noted, view.at, REPLACEMENT_COUNTS_FOR):
            found.add(node.name)
    return frozenset(found)


class DemandReserve:
    """Keeps room that demand would ask back if it were still waiting (hysteresis).

    Demand that found room on nodes in this plan was placed by its bare requests. Had the room not
    been there it would have been bought with its over-subscription on top, so the difference must
    stay free on the nodes of its sector, or the next burst would bring back what leaves now.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        view = builder.view
        self._builder = builder
        self._reserve: dict[str, IntArray] = {}
        over = {f.sector: f.over_subscription for f in view.settings.fleets()}
        if not any(over.values()) or not builder.reservations:
            return
        shown = {status.settings.sector for status in view.inventory.fleets}
        for waiting in builder.waiting:
            sector = waiting.sectors[0]
            if sector not in shown:
                continue  # no region of its fleets answers: nothing would be bought there now
            count = builder.reserved_on_nodes(waiting)
            share = round(over.get(sector, 0.0) * resources.WHOLE)
            if count and share:
                extra = self._extra(waiting.pod_class.requests, sector, share) * count
                self._reserve[sector] = self._reserve.get(sector, 0 * extra) + extra

    def _extra(self, requests: IntArray, sector: str, share: int) -> IntArray:
        """CPU and memory that over-subscription adds to one pod, as the largest fleet caps it."""
        builder = self._builder
        view = builder.view
        offers = [
            builder.sim.dimensions.of_node(offer.row.allocatable, offer.row.volume_limits)
            for key, offer in view.offers.items()
            if view.statuses[key].settings.sector == sector
        ]
        shares = np.full(len(offers), share, dtype=np.int64)
        added = resources.charged(requests, np.array(offers), shares) - requests
        largest: IntArray = added.max(axis=0)
        return largest[: resources.CPU_AND_MEMORY]

    def holds(self, sector: str, staying: BoolArray) -> bool:
        """Return whether the sector's staying nodes keep the reserve free."""
        reserve = self._reserve.get(sector)
        if reserve is None:
            return True
        rows = staying & self._rows_of(sector)[: len(staying)]
        free = np.maximum(self._builder.sim.free[: len(staying)][rows], 0)
        return bool((free[:, : resources.CPU_AND_MEMORY].sum(axis=0) >= reserve).all())

    def _rows_of(self, sector: str) -> BoolArray:
        builder = self._builder
        view = builder.view
        rows = np.zeros(builder.sim.rows, dtype=np.bool_)
        owners: Mapping[NodeName, FleetKey] = view.inventory.fleet_of_node
        for name, row in view.row_of.items():
            key = owners.get(name)
            if key is not None and view.statuses[key].settings.sector == sector:
                rows[row] = True
        return rows

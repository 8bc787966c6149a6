"""Limits on all removals together: min_capacity, demand that would return, the safety stop."""

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
from reconciler.planner.disruption.limits.nodes_that_stay import ended_nodes
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
    """Begin all removals that methods proposed, or none if they are suspiciously many.

    If everything looks empty, a broken list is more likely than an empty cluster, so a second full
    list has to agree. Instances that never joined count as well, including those over the limits of
    `stuck_ends`; these limits and the proof of the cluster apply to them in any case.
    """
    view = builder.view
    ours = len(view.inventory.fleet_of_node)
    over = sum(each.code == STUCK_CAP for each in builder.held)
    suspicious = is_suspicious(len(builder.removals) + over, ours, view.snapshot)
    builder.settle_removals(suspicious=suspicious, also=STUCK_CAP)


def target_may_fall(builder: PlanBuilder, key: FleetKey) -> bool:
    """Return whether the fleet's target is lowered with a failed new node.

    It is if the rolling update that asked for the node is halted: otherwise the fleet would launch
    another that fails. A target below what EC2 provides has been lowered for it already.
    """
    view = builder.view
    update, status = view.inventory.updates.get(key), view.statuses[key]
    falling = sum(removal.targets_lowered for removal in builder.removals if removal.key == key)
    if update is None or not update.halted or builder.targets[key] - falling <= status.min:
        return False
    return builder.targets[key] >= status.provided


def still_draining(builder: PlanBuilder) -> frozenset[NodeName]:
    """Return the nodes with our taint that this plan neither ends nor gives back."""
    done = {name for name in map(_node_done_with, builder.actions) if name is not None}
    return builder.view.draining - done


def _node_done_with(action: AnyAction) -> NodeName | None:
    """Return the node whose drain the action ends; None if it ends none."""
    if isinstance(action, TerminateInstance) or ends_drain(action):
        return action.node
    return None


class RemovalQuota:
    """Counts how many nodes each fleet can do without: target - draining nodes - minimum.

    For nodes that this plan ends the target is lowered already; nodes that it gives back still
    count as draining, as the removal of the taint may fail. Replacements do not count: their
    fleet's target stays. If a fleet has more nodes than its target (somebody lowered it, and EC2
    ended none), the surplus can go too.

    The target includes launching capacity, which may never join. So the minimum also applies to the
    nodes that take pods: if a fleet has no more of these than its minimum, none of them can go.

    One place is kept for each node whose replacement was asked for: if an idle node took the place,
    the replacement would be asked for again and again.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        ended = ended_nodes(builder)
        self._removable = {
            status.key: max(
                builder.targets[status.key],
                len(status.joined_nodes - ended),
            )
            - sum(node.name not in ended for node in status.draining)
            - status.min
            for status in builder.view.inventory.fleets
        }
        self._replaced_later = {
            key: replaced_later(builder.view, key) - ended for key in self._removable
        }
        gone = ended | builder.view.draining
        view, cloud = builder.view, builder.view.snapshot.cloud
        self._taking_pods = {
            status.key: {
                node.name
                for node in _in_service(view, status, gone, cloud)
                if takes_pods(node, view.settings)
            }
            for status in builder.view.inventory.fleets
            if status.min
        }
        """In fleets with a minimum, the nodes that take pods and stay."""
        self._min = {status.key: status.min for status in builder.view.inventory.fleets}

    def allows(self, key: FleetKey, name: NodeName) -> bool:
        """Return whether the node may be removed now."""
        taking = self._taking_pods.get(key, ())
        needed = name in taking and len(taking) <= self._min[key]
        return self.allows_in_time(key, name) and not needed

    def allows_in_time(self, key: FleetKey, name: NodeName) -> bool:
        """Return whether the node may be removed once the fleet's launching capacity has joined."""
        kept = self._replaced_later[key]
        return self._removable[key] > (0 if name in kept else len(kept))

    def left_for_replaced(self, key: FleetKey) -> int:
        """Return how many more nodes can be removed in time if they are replaced."""
        return self._removable[key]

    @property
    def left(self) -> Mapping[FleetKey, int]:
        """Return how many more nodes of each fleet can be removed besides those replaced later."""
        found = {
            key: left - len(self._replaced_later[key]) for key, left in self._removable.items()
        }
        for key, taking in self._taking_pods.items():
            found[key] = min(found[key], len(taking) - self._min[key])
        return found

    def take(self, key: FleetKey, name: NodeName) -> None:
        """Count one more node that is removed now."""
        self.take_in_time(key, name)
        self._taking_pods.get(key, set()).discard(name)

    def take_in_time(self, key: FleetKey, name: NodeName) -> None:
        """Count one more node that is removed once the fleet's launching capacity has joined."""
        self._removable[key] -= 1
        self._replaced_later[key] -= {name}


def minimum_stays(
    builder: PlanBuilder, status: FleetStatus, undecided: AbstractSet[NodeName]
) -> bool:
    """Return whether as many joined nodes stay as the fleet's minimum.

    Nodes that this plan gives back stay. So does a node that is not Ready: a drain under way is not
    given up because of one.

    Args:
        builder: The plan.
        status: The fleet.
        undecided: Draining nodes that this plan may still give back: they count as staying.
    """
    if not status.min:
        return True
    ended = ended_nodes(builder)
    gone = (still_draining(builder) - undecided) | ended
    # One answer that omits an instance must not cancel a drain.
    return sum(1 for _ in _in_service(builder.view, status, gone, None)) >= status.min


def _in_service(
    view: ClusterView,
    status: FleetStatus,
    gone: Container[NodeName | None],
    cloud: CloudState | None,
) -> Iterator[Node]:
    """Yield the nodes within the fleet's target that have joined and stay.

    Args:
        view: The cluster.
        status: The fleet.
        gone: Nodes that are removed.
        cloud: EC2's answer; with None a node counts whether or not EC2 shows its instance.
    """
    inventory = view.inventory
    shown, instances = inventory.regions_shown, inventory.instance_of_node
    left_out = inventory.interrupted.keys() | inventory.stuck_nodes
    for node in in_service(status.nodes, status.key, shown, instances, cloud):
        stays = node.name not in gone and node.name not in left_out
        instance = instances.get(node.name)
        if stays and not is_joining(node, instance, view.at, view.settings):
            yield node


def replaced_later(view: ClusterView, key: FleetKey) -> frozenset[NodeName]:
    """Return the nodes of the fleet whose replacement was asked for and that do not drain yet.

    Nodes of a batch count as long as the batch lasts; others as long as the replacement may need to
    join and take their pods.
    """
    node_names: set[NodeName] = set()
    for node in view.statuses[key].nodes:
        outdated = view.inventory.outdated.get(node.name)
        if outdated is None or outdated.only_for_cheaper_spot or is_draining(node):
            continue
        noted = node.annotations.get(REPLACEMENT_ASKED, "")
        if outdated.has_batch or read_attempts(noted, view.at, REPLACEMENT_COUNTS_FOR):
            node_names.add(node.name)
    return frozenset(node_names)


class DemandMargin:
    """Keeps room that demand would ask for again if it were still pending (hysteresis).

    Demand that found room on nodes in this plan was placed by its bare requests. Without that room
    it would have been bought with its over-subscription on top. So the difference must stay free on
    the nodes of its sector; otherwise the next burst would buy again what leaves now.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        view = builder.view
        self._builder = builder
        self._margin: dict[str, IntArray] = {}
        over = {f.sector: f.over_subscription for f in view.settings.fleets()}
        if not any(over.values()) or not builder.reservations:
            return
        shown = {status.settings.sector for status in view.inventory.fleets}
        for waiting in builder.waiting:
            sector = waiting.sectors[0]
            if sector not in shown:
                continue  # no region of its fleets answers: nothing would be bought there
            count = builder.reserved_on_nodes(waiting)
            share = round(over.get(sector, 0.0) * resources.WHOLE)
            if count and share:
                extra = self._extra(waiting.pod_class.requests, sector, share) * count
                self._margin[sector] = self._margin.get(sector, 0 * extra) + extra

    def _extra(self, requests: IntArray, sector: str, share: int) -> IntArray:
        """Return the CPU and memory that over-subscription adds to a pod on the largest node."""
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
        """Return whether the sector's staying nodes keep the margin free."""
        margin = self._margin.get(sector)
        if margin is None:
            return True
        rows = staying & self._rows_of(sector)[: len(staying)]
        free = np.maximum(self._builder.sim.free[: len(staying)][rows], 0)
        return bool((free[:, : resources.CPU_AND_MEMORY].sum(axis=0) >= margin).all())

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

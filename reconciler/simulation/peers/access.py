"""What a model can see of a world, and do to it."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from reconciler.adapters.memory import MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.errors import NotFound, Refused
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.model.snapshot import Snapshot
from reconciler.observer.observe import observe
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.plan_opening import open_builder
from reconciler.planner.settings import PlannerSettings
from reconciler.simulation.history import History
from reconciler.simulation.peers.groups import REGISTRATION_SECONDS, Groups

UNLIMITED = 1_000_000
"""The limit of nodes of a fleet without `max_capacity`."""


class Access:
    """A world behind the ports that the capacity loop uses.

    Args:
        world: The world.
        groups: Its fleets.
        history: Where evictions and passes are counted.
    """

    def __init__(self, world: MemoryWorld, groups: Groups, history: History) -> None:
        self.world, self.groups = world, groups
        self.clock = world.clock
        self._history = history
        self._cluster, self._cloud = MemoryCluster(world), MemoryCloud(world)
        self._changes_seen = 0
        self._ids = {
            FleetKey(name=record.shape.name, region=record.shape.region): record.id
            for record in world.fleets.records.values()
        }
        self.given_up_watchers: list[Callable[[FleetKey], None]] = []
        """Called with the group of each instance that was ended as it did not become a node."""
        for instance in world.fleets.instances.values():
            self._await_node(instance)
        world.fleets.watchers.append(self._await_node)

    @property
    def settings(self) -> PlannerSettings:
        """Return the settings of the groups."""
        return self.groups.settings

    @property
    def now(self) -> float:
        """Return virtual seconds since the world began."""
        return self.clock.monotonic_seconds()

    @property
    def waiting(self) -> int:
        """Return how many pods have no node."""
        return self._history.waiting

    @property
    def changed(self) -> bool:
        """Return whether anything changed since the last look."""
        return self.world.objects.changed

    @property
    def version(self) -> int:
        """Return a number that differs after any change."""
        return self._changes_seen + self.changed

    def look(self) -> PlanBuilder:
        """Return the planner's what-if cluster of this moment, with a row for each launching node.

        Capacity errors are left out: each model handles them itself.
        """
        self._changes_seen += self.changed
        seen = observe(self._cluster, [self._cloud], self.settings.regions, self.clock)
        cloud = seen.cloud
        assert cloud is not None
        fleets = [replace(f, launch_errors=(), activity_status=None) for f in cloud.fleets]
        snapshot = Snapshot(
            at=seen.at, cluster=seen.cluster, cloud=replace(cloud, fleets=tuple(fleets))
        )
        return open_builder(snapshot, self.settings)

    def passed(self) -> None:
        """Count a pass of the model over the whole cluster."""
        self._history.plans += 1

    # ---- nodes that come and go -----------------------------------------------------------

    def room_for(self, key: FleetKey) -> int:
        """Return how many more nodes the group may have, given the limit of its fleet."""
        fleet = self.groups.fleet_of[key.name]
        most = self.groups.most.get(fleet)
        if most is None:
            return UNLIMITED
        there: Counter[str] = Counter()
        for record in self.world.fleets.records.values():
            there[self.groups.fleet_of[record.shape.name]] += record.target
        return max(0, most - there[fleet])

    def launch(self, key: FleetKey, count: int) -> list[Instance]:
        """Ask the group for more nodes; withdraw at once what EC2 has no capacity for.

        Returns:
            The instances that were launched.
        """
        fleets = self.world.fleets
        record = fleets.records[self._ids[key]]
        before, target = {member.id for member in fleets.members(record)}, record.target
        fleets.set_target(record, target + count)
        after = fleets.members(record)
        if len(after) < record.target:
            fleets.set_target(record, max(target, len(after)))
        return [instance for instance in after if instance.id not in before]

    def _await_node(self, instance: Instance) -> None:
        """End a launched instance later unless it is a node by then."""
        self.clock.call_later(REGISTRATION_SECONDS, partial(self._give_up, instance.id))

    def _give_up(self, instance_id: InstanceId) -> None:
        instance = self.world.fleets.instances.get(instance_id)
        if instance is None or instance.gone or self.node_of(instance_id) is not None:
            return
        self.end(instance_id)
        key = next((key for key, known in self._ids.items() if known == instance.fleet_id), None)
        if key is not None:
            for watch in self.given_up_watchers:
                watch(key)

    def end(self, instance_id: InstanceId) -> None:
        """Terminate an instance, and lower its group's target with it."""
        instance = self.world.fleets.instances.get(instance_id)
        if instance is not None and not instance.gone and instance.fleet_id is not None:
            self._cloud.terminate(
                instance.region, instance.fleet_id, [instance.id], lower_target=True
            )

    def node(self, name: NodeName) -> Node | None:
        """Return a node, while it exists and its instance is not ending."""
        node = self.world.node(name)
        if node is None or node.instance_id is None:
            return node
        instance = self.world.fleets.instances.get(node.instance_id)
        return node if instance is not None and not instance.gone else None

    def node_of(self, instance_id: InstanceId) -> Node | None:
        """Return the node that an instance has become."""
        found = (n for n in self.world.objects.nodes.values() if n.instance_id == instance_id)
        return next(found, None)

    def taint(self, name: NodeName, taint: Taint) -> None:
        """Put a taint on a node."""
        if self.world.node(name) is not None:
            self._cluster.taint_node(name, taint)

    def untaint(self, name: NodeName, key: str) -> None:
        """Remove a taint from a node."""
        if self.world.node(name) is not None:
            self._cluster.untaint_node(name, key)

    # ---- pods -----------------------------------------------------------------------------

    def pods_on(self, name: NodeName) -> list[Pod]:
        """Return the pods that keep a node from being empty, including terminating ones."""
        return [pod for pod in self.world.objects.pods_on(name) if keeps_node(pod)]

    def evict(self, pod: Pod, reason: str) -> bool:
        """Evict a pod; return whether its budget allowed it."""
        try:
            evicted = self._cluster.evict_pod(pod.key, pod.spec.termination_grace_seconds)
        except Refused:
            return False
        except NotFound:
            return True
        self._history.evictions[reason] += evicted
        return True


def keeps_node(pod: Pod) -> bool:
    """Return whether the pod keeps its node from being empty."""
    return not (pod.daemon or pod.mirror or pod.finished)


def wants_node(pod: Pod) -> bool:
    """Return whether a pod waits for a node that could be bought."""
    return pod.node_name is None and not (pod.finished or pod.gated or pod.daemon or pod.deleting)


def reschedulable(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that must run elsewhere when their node is removed, by name."""
    return sorted(
        (pod for pod in pods if keeps_node(pod) and not pod.deleting), key=lambda pod: pod.key
    )

"""A small in-memory world: a cluster and EC2 fleets, under a clock that tests move."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.faults import Call, CallLog
from reconciler.adapters.memory.fleet_record import FleetRecord
from reconciler.adapters.memory.fleets import MemoryFleets
from reconciler.adapters.memory.notices import MemoryMessages
from reconciler.adapters.memory.pods import MemoryObjects
from reconciler.adapters.memory.settings import BudgetShape, Delays, FleetShape, Scoring
from reconciler.adapters.memory.volumes import ClaimShape
from reconciler.model.cluster import DaemonSet, Node, Pod
from reconciler.model.errors import PortError
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from reconciler.model.notices import Notice, NoticeKind


class MemoryWorld:
    """What tests set up and inspect; the program sees it through MemoryCluster and MemoryCloud.

    Args:
        cluster: The cluster's name in tags.
        delays: How long things take.
        start: The first `now`.
        scoring: How the scheduler chooses among nodes.
    """

    def __init__(
        self,
        cluster: str = "analytics",
        delays: Delays | None = None,
        start: datetime | None = None,
        scoring: Scoring = "by-name",
    ) -> None:
        self.delays = delays = delays or Delays()
        self.clock = ManualClock(start) if start else ManualClock()
        self.objects = MemoryObjects(self.clock, delays, scoring)
        self.fleets = MemoryFleets(self.clock, delays, self.objects, cluster)
        self.log = CallLog(self.clock)
        self.messages = MemoryMessages(self.clock)
        """The interruption queue."""
        self.lease_annotations: dict[str, str] = {}
        self.uid = "uid-of-the-memory-cluster"
        """UID of the namespace kube-system: the cluster's identity."""
        self.relists = 2
        """The number in observations; 1 is a cluster that was listed only once."""
        self.calm_seconds = 0.0
        """How long changes that need no plan (a pod was bound, or ended) begin no cycle."""
        self.left_out: dict[str, int] = {}
        """Incomplete lists: of this kind (`nodes`, `pods`) every n-th object is missing, by name; 1
        is an empty list."""

    @property
    def calls(self) -> list[Call]:
        """Return every call that the program made, in order."""
        return self.log.calls

    def fail_next(
        self, operation: str, error: PortError, *, times: int = 1, applied: bool = False
    ) -> None:
        """Make the next calls of a port's method fail; see CallLog.fail_next."""
        self.log.fail_next(operation, error, times=times, applied=applied)

    def add_fleet(self, shape: FleetShape, target: int = 0) -> FleetId:
        """Create a fleet as Terraform does, and return its id."""
        return self.fleets.add(shape, target).id

    def add_node(self, node: Node) -> None:
        """Add a node that no fleet made, or change a node."""
        self.objects.add_node(node)

    def add_pod(self, pod: Pod) -> PodKey:
        """Create a pod and return its key with its uid."""
        return self.objects.add_pod(pod).key

    def finish_pod(self, key: PodKey) -> None:
        """Make a pod succeed."""
        self.objects.finish_pod(key)

    def remove_pod(self, key: PodKey) -> None:
        """Delete a pod that is not replaced."""
        self.objects.remove_pods([key])

    def remove_pods(self, keys: Iterable[PodKey]) -> None:
        """Delete pods that are not replaced, all at once: none gets the room of another."""
        self.objects.remove_pods(keys)

    def add_daemon_set(self, daemon_set: DaemonSet) -> None:
        """Create a DaemonSet; its pods run on every node that it selects."""
        self.objects.add_daemon_set(daemon_set)

    def add_claim(self, claim: ClaimShape) -> None:
        """Create a claim, or complete one that only a pod has named."""
        self.objects.add_claim(claim)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Delete a claim as soon as no pod names it."""
        self.objects.volumes.remove(namespace, name)
        self.objects.touch(pressing=False)

    def stop_pod(self, key: PodKey, grace_seconds: int = 30) -> None:
        """Delete a pod as a person; its controller replaces it."""
        pod = self.objects.find(key)
        if pod is not None:
            self.objects.stop_pod(pod, grace_seconds)

    def annotate_pod(self, key: PodKey, annotations: dict[str, str]) -> None:
        """Set a pod's annotations, all of them, as a person."""
        pod = self.objects.find(key)
        if pod is not None:
            self.objects.change_pod(replace(pod, annotations=FrozenMap(annotations)))

    def add_budget(self, budget: BudgetShape) -> None:
        """Create a budget."""
        self.objects.add_budget(budget)

    def refuse_launches(self, fleet_id: FleetId, code: str | None) -> None:
        """Make EC2 have no capacity for a fleet from now on; None: it has capacity again."""
        record = self._record(fleet_id)
        record.refusal_code = code
        if code is None:
            self.fleets.fulfil(record)

    def refuse_pool(
        self,
        region: Region,
        instance_type: str,
        zone: str,
        code: str | None,
        *,
        spot_only: bool = False,
    ) -> None:
        """Refuse launches of a type in a zone, for every fleet, with a code; None ends this.

        Args:
            region: Of the pool.
            instance_type: Of the pool.
            zone: Of the pool.
            code: What EC2 answers.
            spot_only: Whether on-demand instances of the pool can be launched all the same. This
                is a state beside that of all instances, and ends for itself.
        """
        pool = (region, instance_type, zone)
        refused = self.fleets.refused_spot_pools if spot_only else self.fleets.refused_pools
        if code is not None:
            refused[pool] = code
            return
        refused.pop(pool, None)
        for record in self.fleets.of_region(region):
            self.fleets.fulfil(record)

    def refuse_pool_of(self, fleet_id: FleetId, pool: tuple[str, str], code: str | None) -> None:
        """Refuse one fleet's launches of a type in a zone with a code; None ends this."""
        record = self._record(fleet_id)
        if code is not None:
            record.refused_pools[pool] = code
            return
        record.refused_pools.pop(pool, None)
        self.fleets.fulfil(record)

    def slow_launches(
        self, fleet_id: FleetId, seconds: float, pool: tuple[str, str] | None = None
    ) -> None:
        """Make launches of a fleet take this much longer from now on.

        Args:
            fleet_id: The fleet.
            seconds: How much longer.
            pool: The only instance type and zone that this is about; None: all of the fleet's.
        """
        record = self._record(fleet_id)
        pools = record.shape.all_pools() if pool is None else (pool,)
        record.slower_seconds |= dict.fromkeys(pools, seconds)

    def lock_fleet(self, fleet_id: FleetId, *, locked: bool = True) -> None:
        """Keep a fleet `modifying`, so that it refuses changes, or make it active again."""
        record = self._record(fleet_id)
        record.locked = locked
        record.state = "modifying" if locked else "active"

    def never_join(
        self, fleet_id: FleetId, pool: tuple[str, str] | None = None, *, never: bool = True
    ) -> None:
        """Keep instances of a fleet from becoming nodes (a bad AMI), or let them again.

        Args:
            fleet_id: The fleet.
            pool: The only instance type and zone that this is about; None: all of the fleet's.
            never: False ends it.
        """
        record = self._record(fleet_id)
        pools = set(record.shape.all_pools() if pool is None else (pool,))
        kept = record.not_joining - pools
        record.not_joining = kept | pools if never else kept

    def change_template(self, fleet_id: FleetId) -> None:
        """Give a fleet's launch template a new version, which its next instances use."""
        record = self._record(fleet_id)
        record.version = str(int(record.version) + 1)

    def never_ready(self, fleet_id: FleetId, *, never: bool = True) -> None:
        """Keep new nodes of a fleet from turning Ready (no network plugin), or let them again."""
        self._record(fleet_id).turns_ready = not never

    def end_early(self, fleet_id: FleetId, seconds: float | None) -> None:
        """Have instances end by themselves so long after their launch; None: no more of them."""
        self._record(fleet_id).ends_after_seconds = seconds

    def end_instance(self, instance_id: InstanceId) -> None:
        """End an instance from outside, as a failure or a person."""
        self.fleets.terminate(instance_id)

    def enter_standby(self, instance_id: InstanceId, *, decrement: bool) -> None:
        """Put a member of a group into standby; without `decrement` it is replaced."""
        self.fleets.set_aside(instance_id, decrement=decrement)

    def protect_instance(self, instance_id: InstanceId, *, protected: bool = True) -> None:
        """Protect a member of a group from scale-in, or end the protection."""
        self.fleets.protect(instance_id, protected=protected)

    def protect_from_termination(self, instance_id: InstanceId, *, protected: bool = True) -> None:
        """Make EC2 refuse to end an instance, or let it be ended again."""
        instance_ids = self.fleets.termination_protected
        (instance_ids.add if protected else instance_ids.discard)(instance_id)

    def exit_standby(self, instance_id: InstanceId) -> None:
        """Return a member to service; its group's desired capacity grows by one."""
        self.fleets.back_in_service(instance_id)

    def rejoin(self, instance_id: InstanceId) -> None:
        """Register a kubelet again whose Node object was deleted."""
        self.fleets.rejoin(instance_id)

    def interrupt(self, instance_id: InstanceId, *, announce: bool = True) -> None:
        """Interrupt a spot instance: notice now, its end `delays.interruption` later.

        Args:
            instance_id: The instance.
            announce: Whether EventBridge sends the notice to the interruption queue.
        """
        at = self.clock.now() + timedelta(seconds=self.delays.interruption)
        if announce:
            self._announce("spot-interruption", instance_id, at, "terminate")
        self.clock.call_later(self.delays.interruption, lambda: self.end_instance(instance_id))

    def recommend_leaving(self, instance_id: InstanceId) -> None:
        """Send a rebalance recommendation for an instance, which EC2 may soon take back."""
        self._announce("rebalance", instance_id, self.clock.now())

    def _announce(
        self, kind: NoticeKind, instance_id: InstanceId, at: datetime, action: str = ""
    ) -> None:
        at = at.replace(microsecond=0)
        self.messages.send(
            lambda message: (
                Notice(message=message, kind=kind, instance=instance_id, action=action, at=at),
            )
        )
        self.objects.touch()

    def vanish(self, instance_id: InstanceId) -> None:
        """Remove an instance, which EC2 then no longer lists."""
        self.fleets.vanish(instance_id)

    def silence(self, node: NodeName) -> None:
        """Make a kubelet stop answering."""
        self.objects.silence(node)

    def revive(self, node: NodeName) -> None:
        """Make it answer again."""
        self.objects.revive(node)

    def delete_fleet(self, fleet_id: FleetId) -> None:
        """Remove a fleet; its instances go on."""
        del self.fleets.records[fleet_id]
        self.objects.touch()

    def pods(self) -> list[Pod]:
        """Return all pods, by namespace and name."""
        return [pod for _, pod in sorted(self.objects.pods.items())]

    def nodes(self) -> list[Node]:
        """Return all nodes, by name."""
        return [self.objects.nodes[name] for name in sorted(self.objects.nodes)]

    def node(self, name: NodeName) -> Node | None:
        """Return one node, while it exists."""
        return self.objects.nodes.get(name)

    def target(self, fleet_id: FleetId) -> int:
        """Return a fleet's target capacity."""
        return self._record(fleet_id).target

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)

    def _record(self, fleet_id: FleetId) -> FleetRecord:
        return self.fleets.records[fleet_id]

"""The EC2 half of the in-memory world: maintain fleets, their instances, the nodes they become."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.fleet_record import FleetRecord, Pool, id_in
from reconciler.adapters.memory.pods import MemoryObjects
from reconciler.adapters.memory.settings import Delays, FleetShape
from reconciler.model.cluster import NOT_READY, Node
from reconciler.model.errors import Conflict
from reconciler.model.fleet import Fleet, FleetEvent, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId, NodeName, Region

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ERRORS_KEPT = 100
"""How many errors a fleet's history keeps."""


class MemoryFleets:
    """Fleets that keep their target as EC2 does: what ends without lowering it is replaced.

    Args:
        clock: Virtual time.
        delays: How long things take.
        objects: The cluster that instances join.
        cluster: The cluster's name in tags.
    """

    def __init__(
        self, clock: ManualClock, delays: Delays, objects: MemoryObjects, cluster: str
    ) -> None:
        self._clock = clock
        self._delays = delays
        self._objects = objects
        self._cluster = cluster
        self._serial = 0
        self.records: dict[FleetId, FleetRecord] = {}
        self.instances: dict[InstanceId, Instance] = {}
        self.launches: list[tuple[InstanceId, FleetId, float]] = []
        """Every launch, with virtual seconds."""
        self.ends: dict[InstanceId, float] = {}
        """When instances began to end; they are billed until then."""
        self.chosen_by_group: list[InstanceId] = []
        """Instances that groups ended because their target was below their size."""
        self._alive: dict[FleetId, dict[InstanceId, None]] = {}
        """Those of each fleet that still count, in the order of their launches."""
        self.launch_seconds: Callable[[FleetShape], float] = lambda _: delays.launch
        """From pending to running, called for each launch."""
        self.join_seconds: Callable[[FleetShape], float] = lambda _: delays.join
        """From running to a Ready node, called for each launch when it begins."""
        self.watchers: list[Callable[[Instance], None]] = []
        """Called with each launch."""
        self.target_watchers: list[Callable[[FleetRecord], None]] = []
        """Called with each fleet whose target was set after its creation."""
        self.termination_protected: set[InstanceId] = set()
        """Instances with DisableApiTermination: only EC2 itself ends them."""
        self.refused_pools: dict[Pool, str] = {}
        """Pools without capacity, with EC2's error code."""
        self.refused_spot_pools: dict[Pool, str] = {}
        """The same for pools without capacity for spot instances only."""

    def add(self, shape: FleetShape, target: int) -> FleetRecord:
        """Create a fleet, as Terraform does."""
        is_group = shape.provider == "asg"
        number = len(self.records) + 1
        shown = FleetId(shape.group or shape.name if is_group else f"fleet-{number:012x}")
        taken = self.records.get(shown)
        elsewhere = taken is not None and taken.shape.region != shape.region
        fleet_id = id_in(shape.region, shown) if elsewhere else shown
        record = FleetRecord(id=fleet_id, shown_id=shown, shape=shape, target=target)
        self.records[fleet_id] = record
        self.fulfil(record)
        return record

    def shown(self, region: Region, shown_id: FleetId) -> FleetRecord | None:
        """Return the fleet that AWS calls this in the region; None if there is none."""
        keys = (shown_id, id_in(region, shown_id))
        found = (self.records[key] for key in keys if key in self.records)
        return next((record for record in found if record.shape.region == region), None)

    def as_shown(self, instance: Instance) -> Instance:
        """Return the instance with the id of its fleet that AWS shows."""
        record = self.records.get(instance.fleet_id) if instance.fleet_id else None
        if record is None or record.shown_id == record.id:
            return instance
        return replace(instance, fleet_id=record.shown_id)

    def set_target(self, record: FleetRecord, target: int) -> None:
        """Set the target without terminations, as ModifyFleet does.

        Raises:
            Conflict: The fleet is being modified for longer than usual.
        """
        if record.locked:
            raise Conflict(record.shape.name, "the fleet is being modified")
        self._retarget(record, target)
        if record.is_group:
            self._fulfil_soon(record)
            return
        record.state = "modifying"

        def done() -> None:
            if not record.locked:
                record.state = "active"

        self._clock.call_later(self._delays.modify, done)
        self._fulfil_soon(record)

    def _fulfil_soon(self, record: FleetRecord) -> None:
        def fulfil() -> None:
            if record.id in self.records:
                self.fulfil(record)

        if self._delays.fulfil:
            self._clock.call_later(self._delays.fulfil, fulfil)
        else:
            fulfil()

    def lower(self, record: FleetRecord) -> None:
        """Lower the target by one and end nothing, as when a group ends a chosen instance."""
        self._retarget(record, record.target - 1)

    def _retarget(self, record: FleetRecord, target: int) -> None:
        record.target = target
        for watch in self.target_watchers:
            watch(record)

    def members(self, record: FleetRecord) -> list[Instance]:
        """Return the fleet's instances that still count."""
        return [self.instances[each] for each in self._alive.get(record.id, ())]

    def fulfil(self, record: FleetRecord) -> None:
        """Launch missing instances; without capacity, note the error and retry later.

        A group ends surplus instances and chooses them itself: the oldest.
        """
        missing = record.target - len(self.members(record))
        if missing < 0 and record.is_group:
            for member in [m for m in self.members(record) if not m.protected][:-missing]:
                self.chosen_by_group.append(member.id)
                self.terminate(member.id)
        for _ in range(max(0, missing)):
            pool, code = self._pool_with_capacity(record)
            if pool is None:
                self._refuse(record, code)
                return
            self._launch(record, pool)

    def _pool_with_capacity(self, record: FleetRecord) -> tuple[tuple[str, str] | None, str]:
        """Return the first of its pools with capacity; else the code of the last one without."""
        if record.refusal_code is not None:
            return None, record.refusal_code
        code, shape = "", record.shape
        best: tuple[str, str] | None = None
        for pool in shape.all_pools():
            if best is not None and pool[0] != best[0]:
                break
            refused = self._refused(record, pool)
            if refused is not None:
                code = refused
            elif not shape.spreads_zones:
                return pool, ""
            elif best is None or self._in_zone(record, pool[1]) < self._in_zone(record, best[1]):
                best = pool
        return best, code if best is None else ""

    def _refused(self, record: FleetRecord, pool: tuple[str, str]) -> str | None:
        """Return the code with which EC2 refuses a fleet's pool; None when it has capacity."""
        where, spot = (record.shape.region, *pool), record.shape.lifecycle == "spot"
        code = record.refused_pools.get(pool) or self.refused_pools.get(where)
        return self.refused_spot_pools.get(where) if code is None and spot else code

    def _in_zone(self, record: FleetRecord, zone: str) -> int:
        return sum(member.zone == zone for member in self.members(record))

    def _refuse(self, record: FleetRecord, code: str) -> None:
        record.errors.append(FleetEvent(at=self._clock.now(), code=code))
        del record.errors[:-ERRORS_KEPT]
        self._objects.touch()
        if record.retry_planned:
            return
        record.retry_planned = True

        def again() -> None:
            record.retry_planned = False
            if record.id in self.records:
                self.fulfil(record)

        self._clock.call_later(self._delays.launch_retry, again)

    def _launch(self, record: FleetRecord, pool: tuple[str, str]) -> None:
        self._serial += 1
        shape = record.shape
        instance = Instance(
            id=InstanceId(f"i-{self._serial:017x}"),
            region=shape.region,
            fleet_id=record.id,
            state="pending",
            instance_type=pool[0],
            zone=pool[1],
            launched_at=self._clock.now(),
            lifecycle=shape.lifecycle,
            launch_template_version=record.version,
            tags=FrozenMap({"cluster": self._cluster, "fleet": shape.name}),
        )
        self.instances[instance.id] = instance
        self._alive.setdefault(record.id, {})[instance.id] = None
        self.launches.append((instance.id, record.id, self._clock.monotonic_seconds()))
        self._objects.touch()
        wait = self.launch_seconds(shape) + record.slower_seconds.get(pool, 0.0)
        join = self.join_seconds(shape)
        self._schedule(wait, instance.id, lambda: self._run(instance.id, record, join))
        if record.ends_after_seconds is not None:
            self._schedule(record.ends_after_seconds, instance.id, lambda: self._fail(instance.id))
        for watch in self.watchers:
            watch(instance)

    def _run(self, instance_id: InstanceId, record: FleetRecord, join_seconds: float) -> None:
        self._set_state(instance_id, "running")
        instance = self.instances[instance_id]
        if (instance.instance_type, instance.zone) not in record.not_joining:
            self._schedule(join_seconds, instance_id, lambda: self._join(instance_id, record))

    def _join(self, instance_id: InstanceId, record: FleetRecord) -> None:
        shape, now = record.shape, self._clock.now()
        instance = self.instances[instance_id]
        name = NodeName(f"ip-{instance_id.removeprefix('i-').lstrip('0')}")
        if name in self._objects.nodes:
            return
        offer = shape.offers.get(instance.instance_type, shape.allocatable)
        labels = {
            **shape.labels,
            **shape.type_labels.get(instance.instance_type, {}),
            HOSTNAME: name,
            ZONE: instance.zone,
            INSTANCE_TYPE: instance.instance_type,
        }
        self._objects.add_node(
            Node(
                name=name,
                uid=f"node-{instance_id}",
                provider_id=f"aws:///{instance.zone}/{instance_id}",
                instance_id=instance_id,
                labels=FrozenMap(labels),
                taints=shape.taints if record.turns_ready else (*shape.taints, NOT_READY),
                ready=record.turns_ready,
                ready_changed_at=now,
                created_at=now,
                allocatable=offer,
                capacity=offer,
            )
        )

    def rejoin(self, instance_id: InstanceId) -> None:
        """Register the kubelet's node again."""
        instance = self.instances[instance_id]
        record = self.records.get(instance.fleet_id) if instance.fleet_id else None
        if record is not None:
            wait = self._delays.join
            self._schedule(wait, instance_id, lambda: self._join(instance_id, record))

    def _fail(self, instance_id: InstanceId) -> None:
        """End an instance as EC2 does without the right to the key of its volume."""
        because = "Client.InternalError: Client error on launch"
        self._change(instance_id, ended_because=because)
        self.terminate(instance_id)

    def terminate(self, instance_id: InstanceId) -> None:
        """End an instance; its fleet replaces it while it is below target."""
        instance = self.instances.get(instance_id)
        if instance is None or instance.gone:
            return
        self._set_state(instance_id, "shutting-down")
        self._no_longer_counts(instance)
        self.ends[instance_id] = self._clock.monotonic_seconds()
        self._clock.call_later(self._delays.terminate, lambda: self._ended(instance_id))
        record = self.records.get(instance.fleet_id) if instance.fleet_id else None
        if record is not None:
            self.fulfil(record)

    def vanish(self, instance_id: InstanceId) -> None:
        """Remove an instance without any trace: no state, no notice."""
        instance = self.instances.pop(instance_id, None)
        if instance is None:
            return
        self._no_longer_counts(instance)
        self.ends[instance_id] = self._clock.monotonic_seconds()
        self._lose_nodes(instance_id)
        record = self.records.get(instance.fleet_id) if instance.fleet_id else None
        if record is not None:
            self.fulfil(record)

    def set_aside(self, instance_id: InstanceId, *, decrement: bool) -> None:
        """Put a member of a group into standby; without `decrement` the group replaces it."""
        instance = self.instances[instance_id]
        record = self.records.get(instance.fleet_id) if instance.fleet_id else None
        if record is None or not record.is_group or not instance.counts:
            return
        self._change(instance_id, set_aside=True, protected=True)
        self._no_longer_counts(instance)
        self._retarget(record, record.target - int(decrement))
        self.fulfil(record)

    def protect(self, instance_id: InstanceId, *, protected: bool) -> None:
        """Protect a member from scale-in, or end the protection."""
        self._change(instance_id, protected=protected)

    def back_in_service(self, instance_id: InstanceId) -> None:
        """Take a member out of standby; its group's target grows by one."""
        instance = self.instances[instance_id]
        record = self.records.get(instance.fleet_id) if instance.fleet_id else None
        if record is None or instance.gone or not instance.set_aside:
            return
        self._change(instance_id, set_aside=False, protected=False)
        self._alive.setdefault(record.id, {})[instance_id] = None
        self._retarget(record, record.target + 1)

    def _no_longer_counts(self, instance: Instance) -> None:
        if instance.fleet_id is not None:
            self._alive.get(instance.fleet_id, {}).pop(instance.id, None)

    def _ended(self, instance_id: InstanceId) -> None:
        if instance_id not in self.instances:
            return
        self._set_state(instance_id, "terminated")
        self._lose_nodes(instance_id)
        self._clock.call_later(self._delays.instance_forgotten, lambda: self._forget(instance_id))

    def _forget(self, instance_id: InstanceId) -> None:
        self.instances.pop(instance_id, None)

    def _lose_nodes(self, instance_id: InstanceId) -> None:
        """Make its node NotReady; later the cloud controller deletes the node."""
        for node in [n for n in self._objects.nodes.values() if n.instance_id == instance_id]:
            self._objects.silence(node.name)
            if self._delays.node_gone is not None:
                delete = partial(self._delete_node, node.name, instance_id)
                self._clock.call_later(self._delays.node_gone, delete)

    def _delete_node(self, name: NodeName, instance_id: InstanceId) -> None:
        node = self._objects.nodes.get(name)
        if node is not None and node.instance_id == instance_id:
            self._objects.remove_node(name)

    def _set_state(self, instance_id: InstanceId, state: str) -> None:
        self._change(instance_id, state=state)

    def _change(self, instance_id: InstanceId, **changed: str | bool) -> None:
        self.instances[instance_id] = replace(self.instances[instance_id], **changed)  # type: ignore[arg-type] # by name
        self._objects.touch()

    def _schedule(self, seconds: float, instance_id: InstanceId, call: Callable[[], None]) -> None:
        """Do something later unless the instance is ending by then."""

        def if_alive() -> None:
            instance = self.instances.get(instance_id)
            if instance is not None and not instance.gone:
                call()

        self._clock.call_later(seconds, if_alive)

    def fleet(self, record: FleetRecord) -> Fleet:
        """Return the fleet as EC2 describes it."""
        shape, members = record.shape, self.members(record)
        status = "pending_fulfillment"
        if self._pool_with_capacity(record)[0] is None:
            status = "error"
        if len(members) >= record.target:
            status = "fulfilled"
        tags = {**shape.tags, "cluster": self._cluster, "fleet": shape.name}
        return Fleet(
            id=record.shown_id,
            name=shape.name,
            provider=shape.provider,
            region=shape.region,
            state=record.state,
            target_capacity=record.target,
            fulfilled_capacity=float(len(members)),
            activity_status=None if record.is_group else status,
            tags=FrozenMap(tags),
            launch_template_id=f"lt-{record.id}",
            launch_template_version=record.version,
            instance_types=tuple(dict.fromkeys(kind for kind, _ in shape.all_pools())),
            zones=tuple(dict.fromkeys(z for _, z in shape.all_pools())) if record.is_group else (),
            lifecycle=shape.lifecycle if record.is_group else None,
            launch_errors=tuple(record.errors),
            min_size=shape.min_size,
            max_size=shape.max_size,
        )

    def of_region(self, region: Region) -> list[FleetRecord]:
        """Return the region's fleets by name."""
        found = [record for record in self.records.values() if record.shape.region == region]
        return sorted(found, key=lambda each: (each.shape.name, each.id))

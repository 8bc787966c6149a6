"""What must hold at every call that changes something, judged by the world's true state.

Nothing here knows the planner: the laws are those of an operator who watches both APIs. Where the
program acted on a picture that the world had left behind meanwhile (a stale cache, a pod that was
protected between the plan and the eviction), the law asks only for what the picture could show.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.adapters.memory import Call
from reconciler.model.actions import INTERRUPTION, PODS_BLOCK_SINCE, ROLLING_UPDATE, SetCapacity
from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import parse_rfc3339
from reconciler.planner.nodes.drain_taints import has_soft_taint
from reconciler.planner.nodes.interruptions import read_notice
from reconciler.planner.settings import FleetSettings
from tests.builders import is_tainted
from tests.life.asked_in_place import is_replaced, is_taken_back, new_nodes_of_sets
from tests.life.happenings import Happenings
from tests.life.left_alone import does_work_that_ends, is_left_alone
from tests.life.stage import Stage

LAST_CALL_SECONDS = 30.0
RACE_SECONDS = 5.0
"""A pod that was bound less long ago than this may have come after the last check."""


class Laws:
    """Watches all calls of the program; `broken` lists what should not have been.

    Args:
        stage: What is watched.
        happenings: When people protected what.
    """

    def __init__(self, stage: Stage, happenings: Happenings) -> None:
        self._stage = stage
        self._world = stage.world
        self._happenings = happenings
        self.broken: list[str] = []
        self.changes: list[tuple[float, FleetId, int, int]] = []
        """Every change of a target by the program: when, which, from, to."""
        self.evictions: list[tuple[float, PodKey, str]] = []
        self.endings: list[tuple[float, InstanceId]] = []
        self.lowered_by_ends = Counter[FleetId]()
        """How often the desired capacity of a group went down with the end of an instance."""
        self.replaced_at = 0.0
        """When an instance that never joined, or does not answer, was last ended to be replaced, or
        the node of one was deleted, whose pods then wait."""
        self._replaced: set[InstanceId | None] = set()
        self._given_back: set[NodeName] = set()
        """Nodes that carried our taint when it was taken off."""
        self._waiting_when_seen = 0
        """Pods that waited in the last picture of the cluster."""
        self._asked_for_sets = 0
        """New nodes that the last plan asks for in the place of sets of nodes."""
        self._had_nodes: set[InstanceId | None] = set()
        """Instances of the nodes in the last picture, of which a person may delete one since."""
        self._taken_back: set[NodeName] = set()
        """Nodes that EC2 takes back, as they or the last plan say: the mark may be refused."""
        self._going: set[NodeName] = set()
        """Nodes that EC2 takes back, or whose fleet is to go: their pods need new ones first."""
        stage.process.plan_hooks.append(self._planned)
        self._laws: dict[str, Callable[[Call], None]] = {
            "observe_cluster": self._observing,
            "evict_pod": self._evicting,
            "delete_pod": self._deleting,
            "set_target_capacity": self._setting_target,
            "terminate_instances": self._terminating,
            "terminate_in_group": self._terminating_in_group,
            "delete_node": self._deleting_node,
            "taint_node": self._touching_node,
            "untaint_node": self._untainting_node,
            "annotate_node": self._touching_node,
        }
        self._world.log.watchers.append(self._watch)

    def _watch(self, call: Call) -> None:
        law = self._laws.get(call.operation)
        if law is not None:
            law(call)

    def _break(self, what: str) -> None:
        self.broken.append(f"{self._now():.1f} s: {what}")

    def _now(self) -> float:
        return self._world.clock.monotonic_seconds()

    # What is ours ------------------------------------------------------------------------------

    def _config_of(self, fleet_id: FleetId | None) -> FleetSettings | None:
        """The config of a fleet when the plan was made, or now; None when it is not ours to touch.

        A fleet that `allow_destroy` lists may be touched, and may hold nothing.
        """
        record = self._world.fleets.records.get(fleet_id) if fleet_id else None
        if record is None:
            return None
        process = self._stage.process
        for settings in (process.planned_with, process.settings):
            for fleet in settings.fleets():
                if fleet.name == record.shape.name and record.shape.region in fleet.regions:
                    return fleet
        return None

    def _may_touch(self, fleet_id: FleetId | None) -> bool:
        record = self._world.fleets.records.get(fleet_id) if fleet_id else None
        allowed = self._stage.process.planned_with.allow_destroy
        return self._config_of(fleet_id) is not None or (
            record is not None and record.shape.name in allowed
        )

    def _fleet_of(self, node: Node) -> FleetId | None:
        """The fleet whose label a node carries."""
        for record in self._world.fleets.records.values():
            if node.labels.get("fleet") == record.shape.name and (
                node.labels.get("topology.kubernetes.io/region") == record.shape.region
            ):
                return record.id
        return None

    def _was_guarded(self, name: str) -> bool:
        """Whether a protection is older than the picture that the plan was made from."""
        since = self._happenings.guarded_at.get(name)
        return since is not None and since < self._stage.process.cluster_known_at

    # Pods --------------------------------------------------------------------------------------

    def counted_on(self, name: NodeName) -> list[Pod]:
        """Pods that would be lost with a node."""
        return [
            pod
            for pod in self._world.objects.pods_on(name)
            if not (pod.daemon or pod.mirror or pod.finished or pod.spec.priority < 0)
        ]

    def guards(self, node: Node) -> bool:
        """Whether a pod that does not count, a balloon, is protected all the same."""
        return any(
            pod.key.uid in self._happenings.guarded_at
            for pod in self._world.objects.pods_on(node.name)
        )

    def _evicting(self, call: Call) -> None:
        key = call.arguments[0]
        assert isinstance(key, PodKey)
        pod = self._world.objects.find(key)
        if pod is None or pod.deleting or pod.node_name is None:
            return
        self.evictions.append((self._now(), pod.key, str(pod.node_name)))
        self.broken += [f"{self._now():.1f} s: {key} evicted: {why}" for why in self._bars(pod)]

    def _bars(self, pod: Pod) -> Iterator[str]:
        """Why a pod must not be evicted. Nothing voluntary holds one that EC2 is about to end."""
        node = self._world.node(pod.node_name) if pod.node_name is not None else None
        if node is not None and node.name in self._taken_back:
            yield from self._bars_of(node, forced=True)
            if is_left_alone(pod, node, self._world.clock.now()):
                yield f"a {pod.owner.kind if pod.owner else ''}'s pod is left alone there"
            return
        if pod.owner is None:
            yield "it has no controller"
        elif does_work_that_ends(pod) and not pod.finished:
            yield "its work has started"
        if pod.daemon or pod.mirror:
            yield "it lives and ends with its node"
        if pod.spec.local_storage:
            yield "it keeps data on its node"
        if pod.spec.termination_grace_seconds > 120:
            yield "it may take longer to end than a drain may take"
        if self._was_guarded(pod.key.uid):
            yield "it is protected"
        if node is not None:
            yield from self._bars_of(node)
            yield from self._settling(pod, self._fleet_of(node))

    def _settling(self, pod: Pod, fleet_id: FleetId | None) -> Iterator[str]:
        """A pod that counts is not moved again right after it came, unless its fleet is to go."""
        settings = self._config_of(fleet_id)
        removed = self._stage.process.planned_with.allow_destroy
        if settings is None or settings.name in removed or pod.spec.priority < 0:
            return
        since = pod.started_at or pod.created_at
        seconds = settings.scale_in.settle_seconds - RACE_SECONDS
        if since is not None and (self._world.clock.now() - since).total_seconds() < seconds:
            yield f"it was placed at {since:%H:%M:%S}, and has not settled"

    def _bars_of(self, node: Node, *, forced: bool = False) -> Iterator[str]:
        """Why a node must not be drained; a refused taint holds nothing that EC2 ends anyway."""
        if not forced and self._was_guarded(node.name):
            yield "its node is protected"
        if not self._may_touch(self._fleet_of(node)):
            yield f"{node.name} is not ours"
        if not (forced or is_tainted(node)):
            yield f"{node.name} does not carry our taint"

    def _deleting(self, call: Call) -> None:
        """Only in the last 30 s of a node that EC2 takes back (docs/interruptions.md).

        Or when the pods of an expired node have had their time; a pod may be gone already.
        """
        key = call.arguments[0]
        assert isinstance(key, PodKey)
        pod = self._world.objects.find(key)
        if pod is None:
            return
        node = self._world.node(pod.node_name) if pod.node_name else None
        if node is not None and self._had_their_time(node):
            return
        notice = read_notice(node) if node is not None else None
        left = notice.deadline - self._world.clock.now() if notice is not None else None
        if left is None or left.total_seconds() > LAST_CALL_SECONDS + RACE_SECONDS:
            self._break(f"{call.subject} deleted past its budget")

    def _had_their_time(self, node: Node) -> bool:
        """Whether pods have kept the node for longer than its fleet's `terminate_after`."""
        settings = self._config_of(self._fleet_of(node))
        first, _, stopped = node.annotations.get(PODS_BLOCK_SINCE, "").partition("/")
        since = parse_rfc3339(first)
        if settings is None or settings.terminate_after_seconds is None or since is None:
            return False
        until = parse_rfc3339(stopped) or self._world.clock.now()
        return (until - since).total_seconds() >= settings.terminate_after_seconds

    # Nodes -------------------------------------------------------------------------------------

    def _untainting_node(self, call: Call) -> None:
        """Our own taint may come off any node, and what we noted there with it."""
        node = self._world.node(NodeName(call.subject))
        if node is not None and (is_tainted(node) or has_soft_taint(node)):
            self._given_back.add(node.name)
        self._touching_node(call)

    def _touching_node(self, call: Call) -> None:
        node = self._world.node(NodeName(call.subject))
        given_back = node is not None and node.name in self._given_back
        if given_back and call.operation in {"untaint_node", "annotate_node"}:
            return
        if node is not None and not self._may_touch(self._fleet_of(node)):
            self._break(f"{call.operation} on {node.name}, which is not ours")

    def _deleting_node(self, call: Call) -> None:
        self._touching_node(call)
        node = self._world.node(NodeName(call.subject))
        if node is not None and node.instance_id in self._replaced:
            self.replaced_at = self._now()
        instances = self._world.fleets.instances
        instance = instances.get(node.instance_id) if node and node.instance_id else None
        if node is not None and instance is not None and instance.state != "terminated":
            self._break(f"{node.name} deleted while its instance is {instance.state}")

    # Fleets ------------------------------------------------------------------------------------

    def _setting_target(self, call: Call) -> None:
        fleet_id, target = call.arguments
        assert isinstance(target, int)
        record = self._world.fleets.records[FleetId(str(fleet_id))]
        before = record.target
        self.changes.append((self._now(), record.id, before, target))
        name = record.shape.name
        if not self._may_touch(record.id):
            self._break(f"the target of {name} set, which is not ours")
        config = self._config_of(record.id)
        home = self._stage.process.settings.home_region
        least = config.min_capacity if config and record.shape.region == home else 0
        most = 0 if config is None else config.max_capacity
        if target < before and target < least:
            self._break(f"{name} lowered to {target}, its minimum is {least}")
        if target > before and most is not None and target > max(most, least):
            self._break(f"{name} raised to {target}, its maximum is {most}")
        needed = sum(1 for _ in self._needed_nodes(record.id))
        if target < before and target < needed:
            self._break(f"{name} lowered to {target} while {needed} of its nodes hold pods")
        self._raising(name, len(self._world.fleets.members(record)), before, target, least)

    def _waiting(self) -> int:
        return sum(p.node_name is None and not p.deleting for p in self._world.pods())

    def _planned(self, snapshot: Snapshot, plan: Plan) -> None:
        self._had_nodes = {node.instance_id for node in snapshot.cluster.nodes}
        self._asked_for_sets = new_nodes_of_sets(plan)
        self._taken_back = {n.name for n in snapshot.cluster.nodes if is_taken_back(n, plan)}
        self._going = self._taken_back | {
            node.name
            for node in snapshot.cluster.nodes
            if is_replaced(node, plan) and self._config_of(self._fleet_of(node)) is None
        }
        self.broken += [
            f"{self._now():.1f} s: the desired capacity of {action.fleet} is to be lowered from "
            f"{action.from_capacity} to {action.to_capacity}: its group would choose what it ends"
            for action in plan.actions
            if isinstance(action, SetCapacity)
            and action.provider == "asg"
            and action.to_capacity < action.from_capacity
        ]

    def _observing(self, _call: Call) -> None:
        """A plan serves the pods of its picture, though some are gone when it is carried out."""
        if self._stage.process.frozen_at is None:
            self._waiting_when_seen = self._waiting()

    def _raising(self, name: str, members: int, before: int, target: int, least: int) -> None:
        """No launch storm: never more new nodes than pods that wait, or nodes that they replace."""
        waiting = max(self._waiting(), self._waiting_when_seen)
        waiting += sum(len(self.counted_on(name)) for name in self._going)
        settings = self._stage.process.settings
        at_once = max(f.scale_in.non_empty_at_once_max for f in settings.fleets())
        consolidating = max(at_once, self._asked_for_sets) if settings.consolidation else 0
        updating = sum(ROLLING_UPDATE in node.annotations for node in self._world.nodes())
        kept_free = sum(item.nodes for item in settings.headroom)
        more = waiting + consolidating + updating + kept_free + 1
        if target > max(before, members, least) + more:
            self._break(f"{name} raised from {before} to {target} for {waiting} pods")

    def _needed_nodes(self, fleet_id: FleetId) -> Iterator[Node]:
        """Nodes of live instances of a fleet that hold pods that count."""
        for node in self._world.nodes():
            instance = self._live(node.instance_id)
            if instance is None or instance.fleet_id != fleet_id or not node.ready:
                continue
            if self._settled_pods(node.name):
                yield node

    def _settled_pods(self, name: NodeName) -> list[Pod]:
        """Pods that count and were bound before any check of this moment."""
        now = self._world.clock.now()
        return [
            pod
            for pod in self.counted_on(name)
            if pod.started_at is not None and (now - pod.started_at).total_seconds() > RACE_SECONDS
        ]

    def _live(self, instance_id: InstanceId | None) -> Instance | None:
        instance = self._world.fleets.instances.get(instance_id) if instance_id else None
        return instance if instance is not None and not instance.gone else None

    def _terminating_in_group(self, call: Call) -> None:
        """The end of one chosen instance, which lowers the desired capacity in the same call."""
        instance_id, lowers = call.arguments
        instance = self._live(InstanceId(str(instance_id)))
        record = (
            self._world.fleets.records.get(instance.fleet_id or FleetId("")) if instance else None
        )
        if record is not None and lowers:
            self.changes.append((self._now(), record.id, record.target, record.target - 1))
            self.lowered_by_ends[record.id] += 1
        self._terminating(replace(call, arguments=(instance_id,)))

    def _terminating(self, call: Call) -> None:
        for argument in call.arguments:
            instance = self._live(InstanceId(str(argument)))
            if instance is not None and instance.id not in self._world.fleets.termination_protected:
                self.endings.append((self._now(), instance.id))
                self.broken += [
                    f"{self._now():.1f} s: {instance.id} ended: {why}"
                    for why in self._ending_bars(instance)
                ]

    def _ending_bars(self, instance: Instance) -> Iterator[str]:
        """Why an instance must not be ended; protection holds nothing that EC2 ends anyway."""
        if not self._may_touch(instance.fleet_id):
            yield "its fleet is not ours"
        nodes = [n for n in self._world.nodes() if n.instance_id == instance.id]
        if not nodes and instance.id not in self._had_nodes:
            assert instance.launched_at is not None
            age = (self._world.clock.now() - instance.launched_at).total_seconds()
            if age < self._stage.process.planned_with.instance_init_seconds:
                yield f"it is {age:g} s old and may still join"
        if not all(node.ready for node in nodes) or not nodes:
            self.replaced_at = self._now()
            self._replaced.add(instance.id)
        for node in nodes:
            if self._was_guarded(node.name) and INTERRUPTION not in node.annotations:
                yield f"{node.name} is protected"
            if not node.ready:
                yield from self._silent_bars(node)
            elif not is_tainted(node):
                yield f"{node.name} does not carry our taint"
            elif self._settled_pods(node.name):
                yield f"{self._settled_pods(node.name)[0].key} runs on {node.name}"

    def _silent_bars(self, node: Node) -> Iterator[str]:
        """A node that does not answer may be replaced in time, started Jobs given up by then."""
        silent_since = node.ready_changed_at
        assert silent_since is not None
        silent = (self._world.clock.now() - silent_since).total_seconds()
        counted = self._settled_pods(node.name)
        if counted and silent < self._stage.process.planned_with.unready_seconds:
            yield f"{node.name} is silent for {silent:g} s only"
        for pod in counted:
            if not pod.deleting and (does_work_that_ends(pod) or self._was_guarded(pod.key.uid)):
                yield f"{pod.key} may still run on {node.name}"

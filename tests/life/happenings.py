"""What the steps of a program do to the world; a step that has nothing to act on does nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reconciler.adapters.memory import BudgetShape
from reconciler.model.actions import DO_NOT_DISRUPT
from reconciler.model.cluster import DaemonSet, Node, Owner, Pod, PodSpec
from reconciler.model.errors import (
    Conflict,
    OutcomeUnknown,
    PortError,
    Throttled,
    Unavailable,
)
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, PodKey
from tests.builders import AWAY, HOME, make_spec, selecting
from tests.life.programs import Step
from tests.life.stage import Stage

NAMESPACE = "ns"
CPUS = ("250m", "500m", "1", "1500m", "2", "3", "3500m", "100m")
SLOW_STOP_SECONDS = 90.0
CODES = ("InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "UnfulfillableCapacity")
OPERATIONS = (
    "set_target_capacity", "terminate_instances", "taint_node", "untaint_node", "annotate_node",
    "evict_pod", "counted_pods_on", "remember", "observe_cloud", "observe_cluster", "fleet",
    "instances", "delete_node",
)  # fmt: skip
CHANGING = (
    "set_target_capacity", "terminate_instances", "taint_node", "untaint_node", "annotate_node",
    "evict_pod", "remember", "delete_node",
)  # fmt: skip


class Happenings:
    """Carries steps out, and remembers what people did when.

    Args:
        stage: Where.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world
        self.guarded_at: dict[str, float] = {}
        """Uids of protected pods, and names of protected nodes, with the time of the protection."""
        self._serial = 0
        self._specs: dict[tuple[object, ...], PodSpec] = {}

    def do(self, step: Step) -> None:
        """Carry one step out."""
        name = step.kind.replace("-", "_")
        act: Callable[[Step], None] = getattr(self, f"_{name}")
        act(step)

    def _now(self) -> float:
        return self.world.clock.monotonic_seconds()

    def _nothing(self, step: Step) -> None:
        """What steps shrink to."""

    # Workloads ---------------------------------------------------------------------------------

    def _create(
        self, step: Step, kind: str, count: int = 1, sector: str = "primary", **changed: Any
    ) -> list[PodKey]:
        """Pods of one workload, with one spec."""
        self._serial += 1
        name = f"{kind.lower()}-{self._serial}"
        owner = None if kind == "Bare" else Owner(kind=kind, name=name, uid=name)
        labels = changed.pop("labels", {})
        annotations = changed.pop("annotations", {})
        shape = (CPUS[step.a], sector, *sorted(changed.items(), key=str))
        if shape not in self._specs:
            spec = make_spec(
                str(changed.pop("cpu", CPUS[step.a])), "256Mi", sector=sector, **changed
            )
            self._specs[shape] = spec
        made = []
        for number in range(count):
            pod = Pod(
                key=PodKey(namespace=NAMESPACE, name=f"{name}-{number}"),
                spec=self._specs[shape],
                owner=owner,
                labels=FrozenMap({"app": name, **dict(labels)}),
                annotations=FrozenMap(annotations),
            )
            made.append(self.world.add_pod(pod))
        return made

    def _deployment(self, step: Step) -> None:
        self._create(step, "ReplicaSet", 1 + step.b % 5)

    def _job(self, step: Step) -> None:
        self._create(step, "Job", 1 + step.b % 3)

    def _stateful(self, step: Step) -> None:
        self._create(step, "StatefulSet", 1 + step.b % 3)

    def _bare(self, step: Step) -> None:
        self._create(step, "Bare")

    def _guarded(self, step: Step) -> None:
        for key in self._create(step, "ReplicaSet", annotations={DO_NOT_DISRUPT: "true"}):
            self.guarded_at[key.uid] = self._now()

    def _budgeted(self, step: Step) -> None:
        """A Deployment whose budget lets one, or none, of its pods be away."""
        count = 1 + step.b % 4
        keys = self._create(step, "ReplicaSet", count)
        pod = self.world.objects.find(keys[0])
        assert pod is not None
        self.world.add_budget(
            BudgetShape(
                namespace=NAMESPACE,
                name=f"budget-{self._serial}",
                selector=selecting(app=pod.labels["app"]),
                min_available=max(0, count - 1 + step.b // 4),
            )
        )

    def _disk(self, step: Step) -> None:
        self._create(step, "ReplicaSet", local_storage=True)

    def _slow(self, step: Step) -> None:
        self._create(step, "ReplicaSet", termination_grace_seconds=90 if step.b % 2 else 600)

    def _balloon(self, step: Step) -> None:
        self._create(step, "ReplicaSet", 1 + step.b % 2, priority=-10)

    def _urgent(self, step: Step) -> None:
        self._create(step, "ReplicaSet", 1 + step.b % 3, priority=1000)

    def _batch(self, step: Step) -> None:
        self._create(step, "Job" if step.b % 2 else "ReplicaSet", 1 + step.b % 4, sector="batch")

    def _huge(self, step: Step) -> None:
        self._create(step, "ReplicaSet", cpu="64" if step.b % 2 else "6")

    def _pinned(self, step: Step) -> None:
        """A pod that names a fleet."""
        fleet = ("primary-small", "primary-large", "primary-steady")[step.b % 3]
        self._create(step, "ReplicaSet", node_selector=FrozenMap({"fleet": fleet}))

    # Changes of workloads ----------------------------------------------------------------------

    def _pods(self, kind: str | None = None) -> list[Pod]:
        return [
            pod
            for pod in self.world.pods()
            if pod.key.namespace == NAMESPACE
            and not (pod.finished or pod.deleting)
            and kind in {None, pod.owner.kind if pod.owner else "Bare"}
        ]

    def _pod(self, step: Step, kind: str | None = None) -> Pod | None:
        found = self._pods(kind)
        return found[(step.a * 8 + step.b) % len(found)] if found else None

    def _finish(self, step: Step) -> None:
        bound = [pod for pod in self._pods("Job") if pod.node_name]
        if bound:
            self.world.finish_pod(bound[(step.a * 8 + step.b) % len(bound)].key)

    def _remove(self, step: Step) -> None:
        """A whole workload is deleted."""
        pod = self._pod(step)
        if pod is not None:
            for each in self._pods():
                if each.labels["app"] == pod.labels["app"]:
                    self.world.remove_pod(each.key)

    def _scale(self, step: Step) -> None:
        pod = self._pod(step, "ReplicaSet")
        if pod is None:
            return
        if step.b % 2:
            self.world.remove_pod(pod.key)
            return
        for _ in range(1 + step.b // 2):
            self._serial += 1
            key = PodKey(namespace=NAMESPACE, name=f"more-{self._serial}")
            fresh = Pod(
                key=key, spec=pod.spec, owner=pod.owner, labels=pod.labels,
                annotations=pod.annotations,
            )  # fmt: skip
            uid = self.world.add_pod(fresh).uid
            if pod.annotations:
                self.guarded_at[uid] = self._now()

    def _delete_pod(self, step: Step) -> None:
        pod = self._pod(step)
        if pod is not None:
            self.world.stop_pod(pod.key)

    def _guard(self, step: Step) -> None:
        pod = self._pod(step)
        if pod is not None:
            self.world.annotate_pod(pod.key, {DO_NOT_DISRUPT: "true"})
            self.guarded_at.setdefault(pod.key.uid, self._now())

    def _unguard(self, step: Step) -> None:
        pod = self._pod(step)
        if pod is not None:
            self.world.annotate_pod(pod.key, {})
            self.guarded_at.pop(pod.key.uid, None)

    def _daemon(self, step: Step) -> None:
        if len(self.world.objects.daemon_sets) < 2:
            self._serial += 1
            spec = make_spec(("50m", "200m")[step.b % 2], "64Mi")
            self.world.add_daemon_set(
                DaemonSet(namespace="kube-system", name=f"daemon-{self._serial}", spec=spec)
            )

    # Operators ---------------------------------------------------------------------------------

    def _minimum(self, step: Step) -> None:
        """A maximum below it goes up as well: the config's validation refuses anything else."""
        least = (0, 0, 1, 2)[step.b % 4]
        most = self.stage.process.settings.fleets()[0].max_capacity
        limit = most if most is None else max(most, least)
        self.stage.change_fleet("primary-small", min_capacity=least, max_capacity=limit)

    def _maximum(self, step: Step) -> None:
        least = self.stage.process.settings.fleets()[0].min_capacity
        limit = (None, least, least + 1, least + 3)[step.b % 4]
        self.stage.change_fleet("primary-small", max_capacity=limit)

    def _thresholds(self, step: Step) -> None:
        for fleet in self.stage.process.settings.fleets():
            changed = replace(fleet.scale_in, utilization_threshold=(0.2, 0.5, 0.95)[step.b % 3])
            self.stage.change_fleet(fleet.name, scale_in=changed)

    def _allow_destroy(self, step: Step) -> None:
        self.stage.allow_destroy(*(["primary-old"] if step.b % 3 else []))

    def _nodes(self) -> list[Node]:
        return [node for node in self.world.nodes() if node.instance_id is not None]

    def _node(self, step: Step) -> Node | None:
        found = self._nodes()
        return found[step.a % len(found)] if found else None

    def _change_node(self, step: Step, **changed: Any) -> None:
        node = self._node(step)
        if node is not None:
            self.world.add_node(replace(node, **changed))

    def _cordon(self, step: Step) -> None:
        self._change_node(step, unschedulable=True)

    def _uncordon(self, step: Step) -> None:
        for node in self._nodes():
            if node.unschedulable:
                self.world.add_node(replace(node, unschedulable=False))

    def _keep_node(self, step: Step) -> None:
        node = self._node(step)
        if node is not None:
            annotations = {**node.annotations, DO_NOT_DISRUPT: "true"}
            self.world.add_node(replace(node, annotations=FrozenMap(annotations)))
            self.guarded_at.setdefault(node.name, self._now())

    def _let_node_go(self, step: Step) -> None:
        for node in self._nodes():
            annotations = {k: v for k, v in node.annotations.items() if k != DO_NOT_DISRUPT}
            self.world.add_node(replace(node, annotations=FrozenMap(annotations)))
            self.guarded_at.pop(node.name, None)

    def _instance(self, step: Step) -> Instance | None:
        found = [i for i in self.world.fleets.instances.values() if not i.gone]
        return found[step.a % len(found)] if found else None

    def _end_by_hand(self, step: Step) -> None:
        instance = self._instance(step)
        if instance is not None:
            self.world.end_instance(instance.id)

    def _delete_node_by_hand(self, step: Step) -> None:
        """Somebody deletes the Node object; the kubelet of a living instance registers again."""
        node = self._node(step)
        if node is None:
            return
        self.world.objects.remove_node(node.name)
        self.guarded_at.pop(node.name, None)  # it registers without its annotations
        instance = self.world.fleets.instances.get(node.instance_id) if node.instance_id else None
        if instance is not None and not instance.gone:
            self.world.rejoin(instance.id)

    def _target_by_hand(self, step: Step) -> None:
        record = self.world.fleets.records[self._fleet(step)]
        if record.locked:
            return
        self.world.fleets.set_target(record, max(0, record.target + (-1, 1, 2)[step.b % 3]))

    def _foreign_node(self, step: Step) -> None:
        self.stage.add_foreign_node()

    # Faults ------------------------------------------------------------------------------------

    def _fail(self, step: Step) -> None:
        """Calls that come to nothing."""
        operation = OPERATIONS[(step.a * 8 + step.b) % len(OPERATIONS)]
        error: PortError = (
            Throttled("api", "slow down"), Unavailable("api", "503"), Conflict("object", "changed"),
        )[step.b % 3]  # fmt: skip
        self.world.fail_next(operation, error, times=1 + step.a % 4)

    def _lost(self, step: Step) -> None:
        """Calls that are carried out, but nobody hears of it."""
        operation = CHANGING[(step.a * 8 + step.b) % len(CHANGING)]
        error = OutcomeUnknown("api", "the reply was lost")
        self.world.fail_next(operation, error, times=1 + step.b % 2, applied=True)

    def _fleet(self, step: Step) -> FleetId:
        found = sorted(self.stage.fleets.values())
        return found[step.a % len(found)]

    def _no_capacity(self, step: Step) -> None:
        self.world.refuse_launches(self._fleet(step), CODES[step.b % 3])

    def _capacity(self, step: Step) -> None:
        for fleet in sorted(self.stage.fleets.values()):
            self.world.refuse_launches(fleet, None)

    def _no_pool(self, step: Step) -> None:
        shape = self.world.fleets.records[self._fleet(step)].shape
        kind, zone = shape.pools[step.b % len(shape.pools)]
        self.world.refuse_pool(shape.region, kind, zone, CODES[step.b % 3])

    def _pools(self, step: Step) -> None:
        for region, kind, zone in sorted(self.world.fleets.refused_pools):
            self.world.refuse_pool(region, kind, zone, None)

    def _never_join(self, step: Step) -> None:
        self.world.never_join(self._fleet(step))

    def _join(self, step: Step) -> None:
        for fleet in self.stage.fleets.values():
            self.world.never_join(fleet, never=False)

    def _slow_launch(self, step: Step) -> None:
        self.world.slow_launches(self._fleet(step), (60, 200, 600)[step.b % 3])

    def _fast_launch(self, step: Step) -> None:
        for fleet in self.stage.fleets.values():
            self.world.slow_launches(fleet, 0)

    def _lock(self, step: Step) -> None:
        self.world.lock_fleet(self._fleet(step))

    def _unlock(self, step: Step) -> None:
        for fleet in self.stage.fleets.values():
            self.world.lock_fleet(fleet, locked=False)

    def _interrupt(self, step: Step) -> None:
        instance = self._instance(step)
        if instance is not None:
            self.world.interrupt(instance.id)

    def _vanish(self, step: Step) -> None:
        instance = self._instance(step)
        if instance is not None:
            self.world.vanish(instance.id)

    def _silence(self, step: Step) -> None:
        node = self._node(step)
        if node is not None:
            self.world.silence(node.name)

    def _revive(self, step: Step) -> None:
        instances = self.world.fleets.instances
        for node in self._nodes():
            instance = instances.get(node.instance_id) if node.instance_id else None
            if instance is not None and not instance.gone:
                self.world.revive(node.name)

    def _stale_cluster(self, step: Step) -> None:
        """Caches lag behind, by a minute at most: older ones are no observation at all."""
        process = self.stage.process
        process.freeze(frozen=True)
        cluster = process.cluster
        pause = (5, 20, 40, 55)[step.b % 4]

        def catch_up() -> None:
            if process.cluster is cluster:
                process.freeze(frozen=False)

        self.world.clock.call_later(pause, catch_up)

    def _stale_cloud(self, step: Step) -> None:
        cloud = self.stage.process.cloud
        cloud.freeze()
        self.world.clock.call_later((5, 20, 60)[step.b % 3], lambda: cloud.freeze(frozen=False))

    def _fresh(self, step: Step) -> None:
        self.stage.process.freeze(frozen=False)
        self.stage.process.cloud.freeze(frozen=False)

    def _holes(self, step: Step) -> None:
        """One list comes with holes; the next one, half a minute later, is whole again."""
        self.world.left_out = {("nodes", "pods")[step.a % 2]: 1 + step.b % 3}
        self.stage.process.relisted()
        self.world.objects.touch()
        self.world.clock.call_later(29, self._make_whole)

    def _make_whole(self) -> None:
        if self.world.left_out:
            self.world.left_out = {}
            self.stage.process.relisted()
            self.world.objects.touch()

    def _whole(self, step: Step) -> None:
        self._make_whole()

    def _slow_stop(self, step: Step) -> None:
        self.world.objects.pod_stop_seconds = SLOW_STOP_SECONDS

    def _fast_stop(self, step: Step) -> None:
        self.world.objects.pod_stop_seconds = self.world.delays.pod_stop

    def _silent_region(self, step: Step) -> None:
        self.stage.process.cloud.silent_regions.add((HOME, AWAY)[step.b % 2])

    def _all_regions(self, step: Step) -> None:
        self.stage.process.cloud.silent_regions.clear()

    def _crash(self, step: Step) -> None:
        """The program dies before or after one of its next calls."""
        self.world.log.crash_at(self.world.log.made + 1 + step.a, after=bool(step.b % 2))

    def end_all_faults(self) -> None:
        """From now on everything works; what is broken stays broken until it is mended."""
        self.world.log.stop_failing()
        self.world.log.stop_crashing()
        for kind in ("capacity", "pools", "join", "fast-launch", "unlock", "fresh", "whole",
                     "fast-stop", "all-regions"):  # fmt: skip
            self.do(Step(kind))
        self._burst_balloons()

    def _burst_balloons(self) -> None:
        """Balloons go: by contract a node with nothing else ends, and its balloons buy another."""
        for pod in self.world.pods():
            if pod.spec.priority < 0:
                self.world.remove_pod(pod.key)

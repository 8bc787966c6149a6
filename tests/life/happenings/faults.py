"""Calls fail, capacity is short, nodes and instances break, pictures are old, the program dies."""

from reconciler.model.errors import (
    Conflict,
    OutcomeUnknown,
    PortError,
    Throttled,
    Unavailable,
)
from tests.builders import AWAY, HOME
from tests.life.happenings.acting import Acting
from tests.life.programs import Step

SLOW_STOP_SECONDS = 90.0
CODES = ("InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "UnfulfillableCapacity")
OPERATIONS = (
    "set_target_capacity", "terminate_instances", "terminate_in_group",
    "taint_node", "untaint_node", "annotate_node",
    "evict_pod", "counted_pods_on", "remember", "observe_cloud", "observe_cluster", "fleet",
    "instances", "delete_node",
)  # fmt: skip
CHANGING = (
    "set_target_capacity", "terminate_instances", "terminate_in_group",
    "taint_node", "untaint_node", "annotate_node",
    "evict_pod", "remember", "delete_node",
)  # fmt: skip


class Faults(Acting):
    """What goes wrong."""

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

    def _never_ready(self, step: Step) -> None:
        """Nodes register, and nothing gives them a network."""
        self.world.never_ready(self._fleet(step))

    def _end_early(self, step: Step) -> None:
        """Instances end by themselves before they are nodes."""
        self.world.end_early(self._fleet(step), (5, 30)[step.b % 2])

    def _join(self, step: Step) -> None:
        for fleet in self.stage.fleets.values():
            self.world.never_join(fleet, never=False)
            self.world.never_ready(fleet, never=False)
            self.world.end_early(fleet, None)

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
            self.world.interrupt(instance.id, announce=step.b % 4 != 0)

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
        self._list_anew()
        self.world.objects.touch()
        self.world.clock.call_later(29, self._make_whole)

    def _list_anew(self) -> None:
        """A full list is taken; the next one has to agree with it."""
        self.stage.process.started_at = self.stage.process.now

    def _make_whole(self) -> None:
        if self.world.left_out:
            self.world.left_out = {}
            self._list_anew()
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
        """From now on everything works; what is broken stays broken until it is fixed."""
        self.world.log.stop_failing()
        self.world.log.stop_crashing()
        for kind in ("capacity", "pools", "join", "fast-launch", "unlock", "fresh", "whole",
                     "fast-stop", "all-regions", "back-in-service", "unprotect",
                     "allow-end"):  # fmt: skip
            self.do(Step(kind))
        self._burst_balloons()

    def _burst_balloons(self) -> None:
        """Balloons go: by contract a node with nothing else ends, and its balloons buy another."""
        for pod in self.world.pods():
            if pod.spec.priority < 0:
                self.world.remove_pod(pod.key)

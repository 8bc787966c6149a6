"""Feeds demand to a world: each line at its time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, count
from typing import assert_never
from zoneinfo import ZoneInfo

from reconciler.adapters.memory import BudgetShape, MemoryWorld
from reconciler.model.cluster import Owner, Pod
from reconciler.model.cron import cron_job_times
from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ControllerDemand,
    CronDemand,
    DemandLine,
    FaultDemand,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
)
from reconciler.model.ids import FleetId, PodKey
from reconciler.simulation.controllers import Controllers
from reconciler.simulation.faults import End, Faults, FleetPool, together
from reconciler.simulation.volumes import change_claim, claims_of


@dataclass(slots=True)
class _Run:
    """A pod of demand and its current pod in the world."""

    demand: PodDemand
    key: PodKey


class Feeder:
    """Plays demand.

    Args:
        world: The world.
        lines: In order of time.
        fleets: The fleets by the names that faults have for them.
        faults: What is wrong with EC2.
        end: Lines from then on are not played.
        finished_kept_seconds: For how long pods that ended by themselves stay in the cluster, where
            demand does not say.
    """

    def __init__(
        self,
        world: MemoryWorld,
        lines: Sequence[DemandLine],
        fleets: dict[str, list[FleetId]],
        faults: Faults,
        end: datetime,
        finished_kept_seconds: float,
    ) -> None:
        self._world = world
        self._fleets = fleets
        self._faults = faults
        self._end = end
        self._finished_kept_seconds = finished_kept_seconds
        self._controllers = Controllers(world)
        self._runs: dict[str, _Run] = {}
        """By the uid of the pod that runs it now."""
        self._places: dict[str, str] = {}
        """The uid of the pod of each demand that its owner will delete, by the demand's id."""
        self._deletions: dict[datetime, list[str]] = {}
        """The ids of the demands whose pods are deleted at a time: owners delete many at once."""
        self._crons: dict[tuple[str, str], int] = {}
        """How often each CronJob was changed: Jobs of an older version stop."""
        self._due_after: dict[tuple[str, str], datetime] = {}
        """When each CronJob was created, or started a Job last: only later times are due."""
        self._jobs = 0
        self.pods = 0
        """How many pods were created from demand."""
        self.jobs_ended_early = 0
        """Pods that run to completion, Jobs' among them, that lost their node before their end: a
        controller's start again; not those that their owner deleted."""
        self.facts: list[FleetFact] = []
        self.faults_of_nothing = 0
        """Faults of a fleet, type or zone that the config does not have."""
        self._held: set[str] = set()
        """The uids of pods that end by themselves, and whose volumes another node still has."""
        self._volumes_elsewhere: set[tuple[str, str]] = set()
        self._next: Iterator[DemandLine] = iter(lines)
        self._line = next(self._next, None)
        shapes = [record.shape for record in world.fleets.records.values()]
        zones = {zone for shape in shapes for _, zone in shape.all_pools()}
        world.objects.volumes.zones = sorted(zones)
        world.objects.watchers.append(self._occupies)
        world.objects.pod_watchers.append(self._changed)
        world.objects.successor_watchers.append(self._succeeded)
        self._await()

    @property
    def controllers_without_spec(self) -> int:
        """Return how many controllers have no pods because the demand never said their spec."""
        return len(self._controllers.without_spec)

    @property
    def volumes_elsewhere(self) -> int:
        """Return how many claims have volumes in zones in which the config has no fleet."""
        return len(self._volumes_elsewhere)

    def _await(self) -> None:
        """Set a timer for the next line; one timer is enough for all lines."""
        if self._line is not None and self._line.at < self._end:
            wait = (self._line.at - self._world.clock.now()).total_seconds()
            self._world.clock.call_later(wait, self._play)

    def _play(self) -> None:
        now = self._world.clock.now()
        while self._line is not None and self._line.at <= now:
            self._happens(self._line)
            self._line = next(self._next, None)
        self._await()

    def _happens(self, line: DemandLine) -> None:
        match line:
            case PodDemand():
                if line.controller is None or line.controller.kind != "DaemonSet":
                    self._create(line)  # nodes bring the pods of DaemonSets
            case ControllerDemand():
                self._controllers.change(line)
            case BudgetDemand():
                self._budget(line)
            case CronDemand():
                self._cron(line)
            case ClaimDemand():
                self._claim(line)
            case FaultDemand():
                self._fault(line)
            case FleetFact():
                self.facts.append(line)
            case PodEnd() | NodeFact():  # part of its pod, known from the beginning
                pass
            case _:
                assert_never(line)

    def _create(self, demand: PodDemand) -> None:
        self.pods += 1
        owner = demand.controller
        uid = f"demand-{self.pods}"
        key = PodKey(namespace=demand.namespace, name=self._free_name(demand), uid=uid)
        self._runs[uid] = _Run(demand, key)
        if demand.until is not None:
            self._places[demand.id] = uid
            self._delete_at(demand.until, demand)
        self._world.add_pod(
            Pod(
                key=key,
                spec=demand.spec,
                owner=owner and replace(owner, uid=f"{owner.kind}/{owner.name}"),
                labels=demand.labels,
                annotations=demand.annotations,
                claims=claims_of(self._world, demand.namespace, key.name, demand.volumes),
            )
        )

    def _free_name(self, demand: PodDemand) -> str:
        """Return its name, with a number appended while another pod has that name."""
        namespace, name, taken = demand.namespace, _name(demand), self._world.objects.pods
        numbered = (f"{name}.{n}" for n in count(2))
        return next(n for n in chain([name], numbered) if (namespace, n) not in taken)

    def _succeeded(self, before: Pod, after: Pod) -> None:
        """Note a controller's replacement of a pod of demand; it runs from the beginning."""
        run = self._runs.pop(before.key.uid, None)
        if run is not None:
            self._lost(run, before)
            run.key = after.key
            self._runs[after.key.uid] = run
            if run.demand.id in self._places:
                self._places[run.demand.id] = after.key.uid

    def _changed(self, before: Pod | None, after: Pod | None) -> None:
        """Handle a pod without a controller that is gone before its end: nothing replaces it."""
        if self._held:
            self._look_at_held(before, after)
        if after is None and before is not None and before.owner is None:
            run = self._runs.pop(before.key.uid, None)
            if run is not None:
                self._lost(run, before)

    def _lost(self, run: _Run, pod: Pod) -> None:
        """Count a pod of demand that was evicted, or lost its node."""
        to_completion = pod.runs_to_completion or run.demand.ran_seconds is not None
        self.jobs_ended_early += to_completion and pod.node_name is not None

    def _delete_at(self, until: datetime, demand: PodDemand) -> None:
        """Delete the pod at a time, together with all others that are deleted then."""
        together = self._deletions.setdefault(until, [])
        if not together:
            wait = (until - demand.at).total_seconds()
            self._world.clock.call_later(wait, partial(self._deleted, until))
        together.append(demand.id)

    def _deleted(self, until: datetime) -> None:
        uids = [self._places.pop(each) for each in self._deletions.pop(until)]
        runs = [self._runs.pop(uid) for uid in uids if uid in self._runs]
        self._world.remove_pods([run.key for run in runs])

    def _occupies(self, pod: Pod, begins: bool) -> None:  # noqa: FBT001 - as watchers are called
        run = self._runs.get(pod.key.uid)
        if not begins or run is None or run.demand.ran_seconds is None:
            return
        held = self._world.objects.volumes.held_elsewhere
        if pod.claims and pod.node_name is not None and held(pod, pod.node_name):
            self._held.add(pod.key.uid)
        else:
            self._world.clock.call_later(run.demand.ran_seconds, partial(self._finish, pod.key))

    def _look_at_held(self, before: Pod | None, after: Pod | None) -> None:
        """Let a pod run that has waited for its volume on its node, and is ready now."""
        if after is None and before is not None:
            self._held.discard(before.key.uid)
        elif after is not None and after.ready and after.key.uid in self._held:
            self._held.discard(after.key.uid)
            self._occupies(after, begins=True)

    def _finish(self, key: PodKey) -> None:
        pod = self._world.objects.find(key)
        if pod is None or pod.deleting or pod.finished:
            return
        kept = self._runs.pop(key.uid).demand.kept_seconds
        self._world.finish_pod(key)
        self._world.clock.call_later(
            self._finished_kept_seconds if kept is None else kept,
            partial(self._world.remove_pod, key),
        )

    def _budget(self, budget: BudgetDemand) -> None:
        if budget.deleted:
            self._world.objects.remove_budget(budget.namespace, budget.id)
            return
        self._world.add_budget(
            BudgetShape(
                namespace=budget.namespace,
                name=budget.id,
                selector=budget.selector,
                min_available=0 if budget.min_available is None else budget.min_available,
                max_unavailable=budget.max_unavailable,
            )
        )

    def _claim(self, claim: ClaimDemand) -> None:
        if claim.zone and claim.zone not in self._world.objects.volumes.zones:
            self._volumes_elsewhere.add((claim.namespace, claim.id))
        change_claim(self._world, claim)

    def _cron(self, cron: CronDemand) -> None:
        key = (cron.namespace, cron.id)
        self._crons[key] = form = self._crons.get(key, 0) + 1
        zone, now = ZoneInfo(cron.time_zone), self._world.clock.now()
        # A CronJob that is changed when a Job is due starts it all the same.
        after = max(self._due_after.setdefault(key, now), now - timedelta.resolution)
        self._await_job(cron, cron_job_times(cron.schedule, zone, after), form)

    def _await_job(self, cron: CronDemand, times: Iterator[datetime], form: int) -> None:
        at = next(times, None)
        if at is None or at >= self._end or (cron.until is not None and at >= cron.until):
            return
        wait = (at - self._world.clock.now()).total_seconds()

        def due() -> None:
            if self._crons[cron.namespace, cron.id] == form:
                self._due_after[cron.namespace, cron.id] = at
                self._start_job(cron)
                self._await_job(cron, times, form)

        self._world.clock.call_later(wait, due)

    def _start_job(self, cron: CronDemand) -> None:
        self._jobs += 1
        name = f"{cron.id}-{self._jobs}"
        for number in range(cron.pods):
            self._create(
                PodDemand(
                    at=self._world.clock.now(),
                    id=f"{name}-{number}",
                    spec=cron.spec,
                    namespace=cron.namespace,
                    controller=Owner(kind="Job", name=name),
                    labels=cron.labels,
                    annotations=cron.annotations,
                    volumes=cron.volumes,
                    ran_seconds=cron.ran_seconds,
                )
            )

    def _fault(self, fault: FaultDemand) -> None:
        faults, pools = self._faults, self._pools_of(fault)
        self.faults_of_nothing += not pools
        match fault.fault:
            case "capacity":
                self._later(fault, self._no_capacity(fault, pools))
            case "interruption":
                self._interrupt(fault)
            case "never-join":
                self._later(fault, together(map(faults.never_join, pools)))
            case "slow-launch":
                slow = together(faults.slow_launches(pool, fault.seconds) for pool in pools)
                self._later(fault, slow)
            case _:
                assert_never(fault.fault)

    def _later(self, fault: FaultDemand, end: End) -> None:
        if fault.until is not None:
            self._world.clock.call_later((fault.until - fault.at).total_seconds(), end)

    def _fleets_of(self, fault: FaultDemand) -> list[FleetId]:
        names = [fault.fleet] if fault.fleet else sorted(self._fleets)
        return [each for name in names for each in self._fleets.get(name, ())]

    def _no_capacity(self, fault: FaultDemand, pools: Sequence[FleetPool]) -> End:
        """Make pools have no capacity; for one fleet, refuse only its launches."""
        if fault.fleet and not (fault.instance_type or fault.zone):
            fleets = self._fleets_of(fault)
            return together(self._faults.refuse_launches(each, fault.code) for each in fleets)
        if fault.fleet:
            return together(self._faults.refuse_pool_of(pool, fault.code) for pool in pools)
        records = self._world.fleets.records
        refused = {(records[fleet].shape.region, kind, zone) for fleet, kind, zone in pools}
        return self._faults.refuse_pools(refused, fault.code)

    def _pools_of(self, fault: FaultDemand) -> list[FleetPool]:
        """Return what the fault is about; nothing if the config does not have what it names."""
        return [
            (fleet, instance_type, zone)
            for fleet in self._fleets_of(fault)
            for instance_type, zone in self._world.fleets.records[fleet].shape.all_pools()
            if fault.instance_type in {"", instance_type} and fault.zone in {"", zone}
        ]

    def _interrupt(self, fault: FaultDemand) -> None:
        """Take back spot instances, the oldest first; those with a notice are ending already."""
        wanted = set(self._fleets.get(fault.fleet, ())) if fault.fleet else None
        instance_ids = [
            instance.id
            for instance in self._world.fleets.instances.values()
            if instance.lifecycle == "spot"
            and self._faults.can_be_interrupted(instance.id)
            and (wanted is None or instance.fleet_id in wanted)
            and fault.instance_type in {"", instance.instance_type}
            and fault.zone in {"", instance.zone}
        ]
        for each in instance_ids[: fault.instances]:
            self._faults.interrupt(each)


def _name(demand: PodDemand) -> str:
    """Return the pod's name: its id, without the namespace where the id begins with it."""
    return demand.id.removeprefix(f"{demand.namespace}/").replace("/", ".")

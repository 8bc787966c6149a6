"""One simulation: a config, demand and random events, from the first line to the end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from reconciler.adapters.memory import Delays, MemoryWorld, Scoring
from reconciler.adapters.memory.fleet_record import FleetRecord, Pool
from reconciler.model.actions import BOUND_TO
from reconciler.model.demand import Demand, FleetFact
from reconciler.model.errors import InputError
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetId
from reconciler.planner.fleets.binding import proof_of
from reconciler.planner.settings import PlannerSettings
from reconciler.records.kubernetes import encode_proof
from reconciler.simulation.chances import Chances
from reconciler.simulation.faults import Faults
from reconciler.simulation.feeding import Feeder
from reconciler.simulation.history import History
from reconciler.simulation.offers import NO_NAMES, Offer, fleets_of, offers_of, shape_of
from reconciler.simulation.process import Process
from reconciler.simulation.program import Program, ProgramMaker

DAY_SECONDS = 86_400.0
DAYS_MAX = 3660
"""A longer demand must contain a wrong time."""
LEAD_SECONDS = 1.0
"""From the world's start to the first line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a simulation other than config and demand."""

    days: float | None = None
    """How long it is, from the first line on; None: until demand ends."""
    sleep_seconds: float = 60.0
    """The longest pause between cycles."""
    calm_seconds: float = 15.0
    """How long changes that need no plan (a pod was bound, or ended) begin no cycle."""
    finished_kept_seconds: float = 60.0
    """How long a pod that ended by itself stays, as with ttlSecondsAfterFinished, where the demand
    does not say."""
    scoring: Scoring = "least-allocated"
    chances: Chances = field(default_factory=Chances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """An instance from its launch to its end."""

    fleet: str
    instance_type: str
    spot: bool
    begin: float
    """Seconds since the beginning."""
    end: float
    usd_per_hour: float

    @property
    def usd(self) -> float:
        """Return what it cost: billed by the second."""
        return (self.end - self.begin) / 3600 * self.usd_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result; it follows from the arguments of the simulation alone."""

    settings: PlannerSettings
    options: Options
    start: datetime
    seconds: float
    """From the start to the end."""
    pods: int
    offers: tuple[Offer, ...]
    launches: tuple[Launch, ...]
    targets: dict[str, list[tuple[float, int]]]
    """By fleet: its target over time in all its regions, as steps of seconds since the
    beginning."""
    history: History
    facts: tuple[FleetFact, ...]
    cycles: int
    interruptions: int
    jobs_ended_early: int
    """Pods that run to completion, and lost their node before they had."""
    controllers_without_spec: int
    """Controllers that have no pods because the demand never said what these request."""
    faults_of_nothing: int
    """Faults of a fleet, type or zone that the config does not have."""
    volumes_elsewhere: int
    """Claims with volumes in zones in which the config has no fleet."""

    @property
    def days(self) -> float:
        """Return how many days of the demand it has, from the first line on."""
        return (self.seconds - LEAD_SECONDS) / DAY_SECONDS


class Simulation:
    """A world that is ready to run.

    Args:
        demand: The demand.
        settings: The config's settings.
        options: The rest.
        progress: Called with the share of virtual time that has passed, now and then.
        make_program: What runs on the world; None: the capacity loop.
        fleet_of: What the demand calls fleets that have another name in the settings.

    Raises:
        InputError: The demand is empty, or spans more than `DAYS_MAX`.
    """

    def __init__(
        self,
        demand: Demand,
        settings: PlannerSettings,
        options: Options,
        progress: Callable[[float], None] | None = None,
        make_program: ProgramMaker | None = None,
        fleet_of: Mapping[str, str] = NO_NAMES,
    ) -> None:
        if not demand.lines:
            raise InputError(demand.name, "it is empty", "give a file with at least one line")
        self._settings, self._options, self._progress = settings, options, progress
        start = demand.begin - timedelta(seconds=LEAD_SECONDS)
        whole = max(1.0, (demand.end - demand.begin).total_seconds())
        if options.days is None and whole > DAYS_MAX * DAY_SECONDS:
            raise InputError(
                demand.name,
                f"it spans {whole / DAY_SECONDS:,.0f} days, from {demand.begin:%Y-%m-%d} to "
                f"{demand.end:%Y-%m-%d}; at most {DAYS_MAX:,} are played",
                "correct its times, or play the first N days with --days N",
            )
        self.seconds = LEAD_SECONDS + (
            options.days * DAY_SECONDS if options.days is not None else whole
        )
        self.world = MemoryWorld(cluster=settings.cluster, delays=Delays(
            modify=1, terminate=30, node_gone=20, pod_stop=5, pod_start=5,
        ), start=start, scoring=options.scoring)  # fmt: skip
        self.world.calm_seconds = options.calm_seconds
        self.world.log.keeps_calls = False
        self.offers = offers_of(settings, demand.lines, fleet_of)
        self._usd = {(o.fleet.name, o.region, o.instance_type): o.usd_per_hour for o in self.offers}
        self._types: dict[str, str] = {}
        self._targets: dict[str, list[tuple[float, int]]] = {}
        self._target_now: dict[FleetId, int] = {}
        self._launched = 0
        self.faults = Faults(self.world)
        self.history = History(self.world, demand.recorded_from)
        self._plan_launches()
        names = self._add_fleets(fleet_of)
        self._plan_shortages()
        self.process = self._program(make_program)
        self.feeder = Feeder(
            self.world,
            demand.lines,
            names,
            self.faults,
            start + timedelta(seconds=self.seconds),
            options.finished_kept_seconds,
        )

    def _program(self, make: ProgramMaker | None) -> Program:
        if make is not None:
            return make(self.world, self._settings, self.history)
        self._prove_binding()
        process, sleep_seconds = Process(self.world, self._settings), self._options.sleep_seconds
        process.sleep_seconds = lambda: sleep_seconds
        process.plan_hooks.append(self.history.planned)
        process.outcome_hooks.append(self.history.acted)
        return process

    def _prove_binding(self) -> None:
        """Let the cluster have run the fleets' nodes before, as one that runs a loop has.

        Otherwise the loop would never end instances that do not join when the first ones do not: it
        may be at the wrong cluster then.
        """
        fleets = sorted(record.shown_id for record in self.world.fleets.records.values())
        proof = proof_of(self.world.uid, fleets, self.world.clock.now())
        self.world.lease_annotations[BOUND_TO] = encode_proof(proof)

    def _add_fleets(self, fleet_of: Mapping[str, str]) -> dict[str, list[FleetId]]:
        """Return the fleets by the names that the demand has for them."""
        names: dict[str, list[FleetId]] = {}
        for fleet, region in fleets_of(self._settings):
            shape = shape_of(fleet, region, self.offers)
            keeps = region == fleet.minimum_region(self._settings.home_region)
            target = fleet.min_capacity if keeps else 0
            made = self.world.add_fleet(shape, target)
            names.setdefault(fleet_of.get(fleet.name, fleet.name), []).append(made)
            self._note_target(made, fleet.name, target, 0.0)
        return names

    def _note_target(self, fleet_id: FleetId, name: str, target: int, now: float) -> None:
        """Note a fleet's new target, which adds to those of its name in other regions."""
        steps = self._targets.setdefault(name, [(now, 0)])
        total = steps[-1][1] + target - self._target_now.get(fleet_id, 0)
        self._target_now[fleet_id] = target
        steps.append((now, total))

    def _plan_launches(self) -> None:
        chances, fleets = self._options.chances, self.world.fleets
        fleets.launch_seconds = lambda _: chances.launch_seconds(self._launched)
        fleets.join_seconds = lambda _: chances.join_seconds(self._launched)
        fleets.watchers.append(self._launch)
        fleets.target_watchers.append(self._retargeted)

    def _retargeted(self, record: FleetRecord) -> None:
        """Note a new target."""
        now = self.world.clock.monotonic_seconds()
        self._note_target(record.id, record.shape.name, record.target, now)

    def _plan_shortages(self) -> None:
        chances, fleets = self._options.chances, self.world.fleets
        pools = {
            (record.shape.region, *pool)
            for record in fleets.records.values()
            if record.shape.lifecycle == "spot"
            for pool in record.shape.all_pools()
        }
        for pool in sorted(pools):
            region, instance_type, zone = pool
            for begin, end in chances.shortages(f"{region}/{zone}/{instance_type}", self.seconds):
                self.world.clock.call_later(begin, partial(self._shortage, pool, end - begin))

    def _shortage(self, pool: Pool, seconds: float) -> None:
        """Refuse spot launches in a pool for this long."""
        code = "InsufficientInstanceCapacity"
        self.world.clock.call_later(seconds, self.faults.refuse_pools([pool], code, spot_only=True))

    def _launch(self, instance: Instance) -> None:
        """Note a launched instance; EC2 may take it back later."""
        self._launched += 1
        self._types[instance.id] = instance.instance_type
        if instance.lifecycle != "spot":
            return
        wait = self._options.chances.interruption_seconds(f"{self._launched}")
        if wait is not None and wait < self.seconds:
            self.world.clock.call_later(wait, partial(self.faults.interrupt, instance.id))

    def run(self) -> Result:
        """Run it to its end."""
        step = max(3600.0, self.seconds / 200)
        while self.process.now < self.seconds:
            self.process.run_until(min(self.seconds, self.process.now + step))
            if self._progress is not None:
                self._progress(min(1.0, self.process.now / self.seconds))
        return Result(
            settings=self._settings,
            options=self._options,
            start=self.history.at(0.0),
            seconds=self.seconds,
            pods=self.history.created,
            offers=tuple(self.offers),
            launches=tuple(self._launches()),
            targets=self._targets,
            history=self.history,
            facts=tuple(self.feeder.facts),
            cycles=self.process.cycles,
            interruptions=self.faults.interruptions,
            jobs_ended_early=self.feeder.jobs_ended_early,
            controllers_without_spec=self.feeder.controllers_without_spec,
            faults_of_nothing=self.feeder.faults_of_nothing,
            volumes_elsewhere=self.feeder.volumes_elsewhere,
        )

    def _launches(self) -> list[Launch]:
        fleets, launches = self.world.fleets, []
        for instance, fleet_id, begin in fleets.launches:
            shape = fleets.records[fleet_id].shape
            kind = self._types[instance]
            launches.append(
                Launch(
                    fleet=shape.name,
                    instance_type=kind,
                    spot=shape.lifecycle == "spot",
                    begin=begin,
                    end=min(self.seconds, fleets.ends.get(instance, self.seconds)),
                    usd_per_hour=self._usd[shape.name, shape.region, kind],
                )
            )
        return launches

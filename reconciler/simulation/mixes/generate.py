"""Generates demand from a mix: when each workload comes, changes and ends.

Each workload has a generator of its own, seeded with the seed and its name, so that adding one to
the file does not change the others.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time, timedelta
from math import ceil, cos, exp, log, pi
from random import Random  # noqa: TID251 - seeded here

from reconciler.model.cluster import (
    Owner,
    PodAffinityTerm,
    PodSpec,
    Resources,
    TopologySpreadConstraint,
)
from reconciler.model.demand import (
    BudgetDemand,
    ClaimTemplate,
    ControllerDemand,
    CronDemand,
    Demand,
    DemandLine,
    PodDemand,
)
from reconciler.model.errors import InputError
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import LabelSelector
from reconciler.records.demand import folded
from reconciler.simulation.mixes.schema import (
    CronJobMix,
    DaemonSetMix,
    DeploymentMix,
    JobMix,
    Mix,
    Rolling,
    Span,
    StatefulSetMix,
    Workload,
)

LINES_MAX = 1_000_000
STEP_SECONDS = 300.0
"""The shortest time between two changes of replicas by an autoscaler."""
NOISE_SECONDS = 1800.0
"""How long the random difference of replicas stays the same."""
CPU_STEP, MEMORY_STEP = 10, 16 << 20
"""Drawn sizes are multiples of these."""
SATURDAY = 5
DAY_SECONDS = 86_400.0
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def generated(mix: Mix, name: str, lines_max: int = LINES_MAX) -> Demand:
    """Return the demand of a mix, in order of time.

    Args:
        mix: The mix.
        name: Its name in errors.
        lines_max: How many lines it may have.

    Raises:
        InputError: It has no lines, or more than that.
    """
    lines: list[DemandLine] = []
    for line in _Generator(mix).lines():
        lines.append(line)
        if len(lines) > lines_max:
            raise InputError(
                name, f"it makes more than {lines_max:,} lines of demand", "fewer days or Jobs"
            )
    if not lines:
        raise InputError(name, "it names no workload", "see docs/simulate.md")
    return replace(folded(lines), end=mix.start + timedelta(days=mix.days))


class _Generator:
    """Generates the lines of one mix."""

    def __init__(self, mix: Mix) -> None:
        self._mix = mix
        self._seconds = mix.days * DAY_SECONDS
        self._specs: dict[PodSpec, PodSpec] = {}

    def lines(self) -> Iterator[DemandLine]:
        """Yield the lines, in no order."""
        mix = self._mix
        for deployment in mix.deployments:
            for number in range(deployment.count):
                yield from self._deployment(deployment, f"{deployment.name}-{number}")
        for stateful_set in mix.stateful_sets:
            for number in range(stateful_set.count):
                yield from self._stateful_set(stateful_set, f"{stateful_set.name}-{number}")
        for daemon_set in mix.daemon_sets:
            yield self._daemon_set(daemon_set)
        for cron_job in mix.cron_jobs:
            for number in range(cron_job.count):
                yield self._cron_job(cron_job, f"{cron_job.name}-{number}")
        for jobs in mix.jobs:
            yield from self._jobs(jobs)

    def _random(self, *names: str) -> Random:
        return Random("/".join([str(self._mix.seed), *names]))  # noqa: S311 - no secret

    def _at(self, seconds: float) -> datetime:
        return self._mix.start + timedelta(seconds=round(seconds, 3))

    # ---- controllers ----------------------------------------------------------------------

    def _deployment(self, kind: DeploymentMix, name: str) -> Iterator[DemandLine]:
        draw = self._random("deployments", kind.namespace, name)
        spec = self._spec(kind, name, draw)
        noise = _noise(kind, draw)
        last = self._level(kind, 0.0, noise)
        yield from self._controller("Deployment", kind, name, spec, last)
        for step in range(1, ceil(self._seconds / STEP_SECONDS)):
            at = step * STEP_SECONDS
            noise = _noise(kind, draw) if at % NOISE_SECONDS == 0 else noise
            replicas = self._level(kind, at, noise)
            if replicas != last:
                last = replicas
                yield ControllerDemand(
                    at=self._at(at), controller=Owner(kind="Deployment", name=name),
                    namespace=kind.namespace, replicas=replicas,
                )  # fmt: skip
        yield from self._rollouts("Deployment", kind, name, spec)

    def _level(self, kind: DeploymentMix, seconds: float, noise: float) -> int:
        """Return how many replicas a Deployment has."""
        moment = self._at(seconds)
        weekend = moment.weekday() >= SATURDAY
        swing = _of_the_day(moment, kind.peak) * (kind.weekend if weekend else 1.0)
        wanted = kind.replicas.low + (kind.replicas.high - kind.replicas.low) * swing
        return round(min(kind.replicas.high, max(kind.replicas.low, wanted * noise)))

    def _stateful_set(self, kind: StatefulSetMix, name: str) -> Iterator[DemandLine]:
        draw = self._random("stateful_sets", kind.namespace, name)
        spec = self._spec(kind, name, draw)
        replicas = round(_drawn(kind.replicas, draw))
        yield from self._controller("StatefulSet", kind, name, spec, replicas)
        yield from self._rollouts("StatefulSet", kind, name, spec)

    def _daemon_set(self, kind: DaemonSetMix) -> DemandLine:
        draw = self._random("daemon_sets", kind.namespace, kind.name)
        return ControllerDemand(
            at=self._mix.start,
            controller=Owner(kind="DaemonSet", name=kind.name),
            namespace=kind.namespace,
            spec=self._spec(kind, kind.name, draw),
        )

    def _controller(
        self, kind: str, workload: Rolling, name: str, spec: PodSpec, replicas: int
    ) -> Iterator[DemandLine]:
        yield ControllerDemand(
            at=self._mix.start,
            controller=Owner(kind=kind, name=name),
            namespace=workload.namespace,
            replicas=replicas,
            spec=spec,
            claim_templates=_claim_templates(workload),
            labels=FrozenMap({"app": name}),
            annotations=FrozenMap(workload.annotations),
        )
        if workload.max_unavailable is not None:
            yield BudgetDemand(
                at=self._mix.start,
                id=name,
                namespace=workload.namespace,
                selector=_selecting(name),
                max_unavailable=workload.max_unavailable,
            )

    def _rollouts(
        self, kind: str, workload: Rolling, name: str, spec: PodSpec
    ) -> Iterator[DemandLine]:
        """Yield new templates: only a second of grace period distinguishes them."""
        draw = self._random("rollouts", kind, workload.namespace, name)
        rate = workload.rollouts_per_day / DAY_SECONDS
        other = self._known(
            replace(spec, termination_grace_seconds=spec.termination_grace_seconds + 1)
        )
        templates = (other, spec)
        at, number = draw.expovariate(rate) if rate else self._seconds, 0
        while at < self._seconds:
            yield ControllerDemand(
                at=self._at(at), controller=Owner(kind=kind, name=name),
                namespace=workload.namespace, spec=templates[number % 2],
            )  # fmt: skip
            at, number = at + draw.expovariate(rate), number + 1

    # ---- Jobs -----------------------------------------------------------------------------

    def _cron_job(self, kind: CronJobMix, name: str) -> DemandLine:
        draw = self._random("cron_jobs", kind.namespace, name)
        return CronDemand(
            at=self._mix.start,
            id=name,
            schedule=kind.schedule,
            spec=self._spec(kind, name, draw),
            namespace=kind.namespace,
            annotations=FrozenMap(kind.annotations),
            pods=round(_drawn(kind.pods, draw)),
            ran_seconds=round(_drawn(kind.duration, draw), 3),
            until=self._at(self._seconds),
        )

    def _jobs(self, kind: JobMix) -> Iterator[DemandLine]:
        """Yield arrivals of a Poisson process whose rate follows the day, by thinning."""
        draw = self._random("jobs", kind.namespace, kind.name)
        rate = kind.per_hour / 3600
        at, number = draw.expovariate(rate) if rate else self._seconds, 0
        while at < self._seconds:
            share = kind.night + (1 - kind.night) * _of_the_day(self._at(at), kind.peak)
            if draw.random() < share:
                yield from self._job(kind, number, at, draw)
                number += 1
            at += draw.expovariate(rate)

    def _job(self, kind: JobMix, number: int, at: float, draw: Random) -> Iterator[DemandLine]:
        name = f"{kind.name}-{number}"
        spec, seconds = self._spec(kind, name, draw), round(_drawn(kind.duration, draw), 3)
        for pod in range(round(_drawn(kind.pods, draw))):
            yield PodDemand(
                at=self._at(at),
                id=f"{kind.namespace}/{name}-{pod}",
                spec=spec,
                namespace=kind.namespace,
                controller=Owner(kind="Job", name=name),
                annotations=FrozenMap(kind.annotations),
                ran_seconds=seconds,
            )

    # ---- pods -----------------------------------------------------------------------------

    def _spec(self, kind: Workload, name: str, draw: Random) -> PodSpec:
        """Return the spec of the pods of one workload."""
        cpu = _stepped(_drawn(kind.cpu, draw), CPU_STEP, kind.cpu)
        memory = _stepped(_drawn(kind.memory, draw), MEMORY_STEP, kind.memory)
        spread = kind.spread if isinstance(kind, Rolling) else None
        return self._known(
            PodSpec(
                requests=Resources({"cpu": cpu, "memory": memory, "pods": 1}),
                node_selector=FrozenMap(kind.node_selector or self._mix.node_selector),
                topology_spread=(
                    TopologySpreadConstraint(
                        topology_key=ZONE, max_skew=1, hard=True, selector=_selecting(name)
                    ),
                )
                if spread == "zones"
                else (),
                pod_anti_affinity=(
                    PodAffinityTerm(topology_key=HOSTNAME, selector=_selecting(name)),
                )
                if spread == "nodes"
                else (),
            )
        )

    def _known(self, spec: PodSpec) -> PodSpec:
        """Return equal specs as one object."""
        return self._specs.setdefault(spec, spec)


def _claim_templates(workload: Rolling) -> tuple[ClaimTemplate, ...]:
    count = workload.volumes if isinstance(workload, StatefulSetMix) else 0
    return tuple(ClaimTemplate(name=f"data-{number}") for number in range(count))


def _selecting(name: str) -> LabelSelector:
    return LabelSelector(match_labels=FrozenMap({"app": name}))


def _of_the_day(moment: datetime, peak: time) -> float:
    """Return a number from 0 to 1: 1 at the peak and 0 twelve hours from it."""
    hours = moment.hour + moment.minute / 60 + moment.second / 3600
    from_peak = hours - (peak.hour + peak.minute / 60 + peak.second / 3600)
    return (1 + cos(from_peak / 24 * 2 * pi)) / 2


def _noise(kind: DeploymentMix, draw: Random) -> float:
    """Return by what share replicas differ for a while."""
    return 1 + kind.noise * draw.gauss(0.0, 1.0)


def _drawn(span: Span, draw: Random) -> float:
    """Return a log-uniform value: values below and above the geometric mean are equally likely."""
    if span.low == span.high or span.low <= 0:
        return span.low + (span.high - span.low) * draw.random()
    return exp(draw.uniform(log(span.low), log(span.high)))


def _stepped(amount: float, step: int, span: Span) -> int:
    """Return a multiple of the step within the range; a stated amount is unchanged."""
    if span.low == span.high:
        return round(span.low)
    return round(min(span.high, max(span.low, step * round(amount / step))))

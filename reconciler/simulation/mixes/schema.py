"""The schema of a mix's file (docs/simulate.md), read like a sector config, with limits."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from reconciler.config import problems, scalars, yaml_loader
from reconciler.config.base import Section
from reconciler.config.faults import RANGE, in_file_order, out_of_range, wrong_type
from reconciler.config.tree import Mapping, UnquotedText, dotted, place_of, to_data
from reconciler.config.types import (
    Count,
    Integer,
    PositiveCount,
    Share,
    Text,
    TimeOfDay,
    at_least,
    at_most,
    text_like,
)
from reconciler.model.errors import MixError, Problem
from reconciler.records.demand.lines import checked_time

RANGE_MARK = ".."
NAMES = (("deployments", "stateful_sets"), ("daemon_sets",), ("cron_jobs",), ("jobs",))
"""Kinds within which a name is unique. Pods, their labels and their budget are named after a
Deployment or StatefulSet: two of one name would share pods."""
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An amount, or a range of which each workload draws its own."""

    low: float
    high: float


def _span(parse: Callable[[object], float]) -> BeforeValidator:
    """Parse `2`, or `2..8`, with `parse` for each number."""

    def read(value: object) -> Span:
        low, mark, high = scalars.any_text(value).partition(RANGE_MARK)
        span = Span(
            low=parse(UnquotedText(low.strip())),
            high=parse(UnquotedText((high if mark else low).strip())),
        )
        if span.high < span.low:
            raise out_of_range("a range goes from the smaller to the larger amount")
        return span

    return BeforeValidator(read)


def _between(lowest: float, highest: float) -> AfterValidator:
    def check(span: Span) -> Span:
        if span.low < lowest or span.high > highest:
            raise out_of_range(f"must be from {lowest:,g} to {highest:,g}")
        return span

    return AfterValidator(check)


def _moment(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(scalars.any_text(value))
    except ValueError:
        raise wrong_type("must be a time such as 2026-01-05T00:00:00Z") from None
    try:
        return checked_time(found, "start")
    except ValueError as error:
        raise out_of_range(str(error).removeprefix("start: ")) from None


def _unavailable(value: object) -> str | int:
    text = scalars.any_text(value)
    if text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit() and int(text[:-1]) <= 100:
        return text
    number = scalars.integer(value)
    if number < 0:
        raise out_of_range("must be at least 0")
    return number


Cpu: TypeAlias = Annotated[
    Span, _span(partial(scalars.quantity, scale=1000)), _between(1, 1_000_000)
]
"""In milli."""
Memory: TypeAlias = Annotated[Span, _span(scalars.quantity), _between(1, 2**46)]
"""In bytes."""
Replicas: TypeAlias = Annotated[Span, _span(scalars.integer), _between(0, 10_000)]
Pods: TypeAlias = Annotated[Span, _span(scalars.integer), _between(1, 10_000)]
Duration: TypeAlias = Annotated[
    Span, _span(scalars.duration_seconds), _between(1, 30 * DAY_SECONDS)
]
Members: TypeAlias = Annotated[PositiveCount, at_most(1000)]
Volumes: TypeAlias = Annotated[Count, at_most(16)]
PerDay: TypeAlias = Annotated[float, BeforeValidator(scalars.real), at_least(0.0), at_most(100.0)]
PerHour: TypeAlias = Annotated[
    float, BeforeValidator(scalars.real), at_least(0.0), at_most(100_000.0)
]
Days: TypeAlias = Annotated[float, BeforeValidator(scalars.real), at_least(0.001), at_most(366.0)]
Moment: TypeAlias = Annotated[datetime, BeforeValidator(_moment)]
WorkloadName: TypeAlias = Annotated[
    Text, text_like(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", "a name of Kubernetes, up to 40 long")
]
Schedule: TypeAlias = Annotated[Text, AfterValidator(scalars.cron_job_schedule)]
Unavailable: TypeAlias = Annotated[str | int, BeforeValidator(_unavailable)]
Spreading = Literal["zones", "nodes"]


class Workload(Section):
    """What all kinds have in common."""

    name: WorkloadName
    """Of its members `<name>-0` and so on."""
    namespace: WorkloadName = "default"
    cpu: Cpu
    """The CPU request of a pod; each member draws its own from a range."""
    memory: Memory
    """The memory request, in the same way."""
    node_selector: dict[str, Text] = Field(default_factory=dict)
    """In place of the file's."""
    annotations: dict[str, Text] = Field(default_factory=dict)
    """Of its pods."""


class Rolling(Workload):
    """What Deployments and StatefulSets have in common."""

    count: Members = 1
    """How many there are of it."""
    rollouts_per_day: PerDay = 0.0
    """Of each, on average, at times that are drawn."""
    max_unavailable: Unavailable | None = None
    """Its PodDisruptionBudget: pods, or a percentage; without it there is none."""
    spread: Spreading | None = None
    """`zones`: evenly, maxSkew 1; `nodes`: no two pods on one node."""


class DeploymentMix(Rolling):
    """Deployments whose replicas follow the day."""

    replicas: Replicas
    """At night and at the peak of a weekday."""
    peak: TimeOfDay = time(14)
    """When it has most replicas, UTC."""
    weekend: Share = 1.0
    """How much of the day's swing is left on Saturday and Sunday."""
    noise: Share = 0.0
    """How far replicas differ from that by chance: the standard deviation, as a share."""


class StatefulSetMix(Rolling):
    """StatefulSets; they keep their replicas."""

    replicas: Replicas
    volumes: Volumes = 0
    """How many EBS volumes each replica has; they hold it in the zone of its first node."""


class DaemonSetMix(Workload):
    """A DaemonSet."""


class CronJobMix(Workload):
    """CronJobs."""

    count: Members = 1
    schedule: Schedule
    """Of each."""
    pods: Pods = Span(low=1, high=1)
    """Of each of its Jobs."""
    duration: Duration
    """How long a pod runs."""


class JobMix(Workload):
    """Jobs that are created at random times."""

    per_hour: PerHour
    """On average at the peak."""
    night: Share = 1.0
    """How much of that is left twelve hours from the peak."""
    peak: TimeOfDay = time(14)
    """UTC."""
    pods: Pods = Span(low=1, high=1)
    """Each Job draws its own number, as well as its size and duration."""
    duration: Duration


class Mix(Section):
    """A whole file."""

    seed: Integer = 1
    """Of everything that is drawn: the same file gives the same demand."""
    start: Moment = datetime(2026, 1, 5, tzinfo=UTC)
    """The first moment; that is a Monday."""
    days: Days = 1.0
    """How long."""
    node_selector: dict[str, Text] = Field(default_factory=dict)
    """Of every pod that names none: its sector, say."""
    deployments: tuple[DeploymentMix, ...] = ()
    stateful_sets: tuple[StatefulSetMix, ...] = ()
    daemon_sets: tuple[DaemonSetMix, ...] = ()
    cron_jobs: tuple[CronJobMix, ...] = ()
    jobs: tuple[JobMix, ...] = ()


def read_mix(raw: bytes, name: str) -> Mix:
    """Return the mix of a YAML file.

    Raises:
        MixError: Every fault in it, with its place.
    """
    try:
        root, found = yaml_loader.compose(yaml_loader.decode(raw))
    except yaml_loader.Unreadable as error:
        raise MixError(name, (error.problem,)) from None
    wrong = list(found)
    data: Any = to_data(root)
    try:
        mix = Mix.model_validate(data)
    except ValidationError as error:
        wrong += problems.from_validation(error, root, Mix)
        raise MixError(name, in_file_order(wrong)) from None
    wrong += _same_names(mix, root)
    if wrong:
        raise MixError(name, in_file_order(wrong))
    return mix


def _same_names(mix: Mix, root: Mapping) -> Iterator[Problem]:
    """Yield workloads with the same name as another one: they would share pods."""
    for kinds in NAMES:
        known: set[tuple[str, str]] = set()
        for kind, number, workload in _workloads(mix, kinds):
            name = (workload.namespace, workload.name)
            if name in known:
                location = (kind, number, "name")
                place = place_of(root, location)
                yield Problem(
                    line=place.line, column=place.column, path=dotted(location), code=RANGE,
                    message=f"{workload.namespace}/{workload.name} is there already: give it "
                    "another name",
                )  # fmt: skip
            known.add(name)


def _workloads(mix: Mix, kinds: Iterable[str]) -> Iterator[tuple[str, int, Workload]]:
    for kind in kinds:
        for number, workload in enumerate(getattr(mix, kind)):
            yield kind, number, workload

"""The month's workload: from the data beside the repository, or drawn in the same shape.

Three parts, each in a sector of its own: services that are rolled out again and again (a year of a
production cluster's deployments), periodic CI jobs, and batch jobs with real lifetimes.
"""

import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random  # noqa: TID251 - seeded here
from typing import Literal

DATA = Path(__file__).parents[4] / "shared" / "data"
"""Beside the repository; not part of it."""
SERVICES, PERIODICS, BATCH = (
    "govuk_rollouts_simple.csv.gz",
    "prow_eks_periodics_week_simple.csv.gz",
    "openb_pods_simple.csv.gz",
)
DAY = 86_400
MONTH_STARTS_DAY = 60
"""An ordinary month of the year: about 4,000 pods of services are created in it."""
EVERY_NTH_JOB = 60
"""Of the periodic jobs' pods: all of them would be 60,000 a month, and as many events."""
CPU_MAX = {"services": 8_000, "ci": 8_000, "batch": 32_000}
"""What a node of the sector offers; larger pods are left out."""

Sector = Literal["services", "ci", "batch"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One pod of the trace."""

    sector: Sector
    group: str
    """Its Deployment or Job."""
    at: float
    """Seconds from the month's begin; 0 for those that run already."""
    seconds: float
    """Of a Job: how long it runs once it is bound. Of a service: from `at` to its deletion."""
    cpu_milli: int
    memory_mib: int
    away_max: int | None = None
    """What the budget lets be away at once; None without a budget."""


def present() -> bool:
    """Whether the data is on this machine."""
    return all((DATA / name).is_file() for name in (SERVICES, PERIODICS, BATCH))


def arrivals(days: float) -> list[Arrival]:
    """The workload of so many days, in order of time; drawn when the data is not there."""
    found = [*_services(days), *_periodics(days), *_batch(days)] if present() else drawn(days)
    return sorted(found, key=lambda a: (a.at, a.group))


def _rows(name: str) -> Iterator[Mapping[str, str]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _services(days: float) -> Iterator[Arrival]:
    begin, end = MONTH_STARTS_DAY * DAY, (MONTH_STARTS_DAY + days) * DAY
    for row in _rows(SERVICES):
        created, deleted = float(row["creation_s"]), float(row["deletion_s"])
        if created < end and deleted > begin:
            at = max(0.0, created - begin)
            yield Arrival(
                sector="services",
                group=f"{row['app']}-{row['component']}",
                at=at,
                seconds=deleted - begin - at,
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
                away_max=int(row["pdb_max_unavailable"]) if row["pdb_max_unavailable"] else None,
            )


def _periodics(days: float) -> Iterator[Arrival]:
    """The week again and again."""
    for number, row in enumerate(_rows(PERIODICS)):
        if number % EVERY_NTH_JOB:
            continue
        week, created = 7 * DAY, float(row["creation_s"])
        for repeat in range(int(days // 7) + 1):
            if repeat * week + created < days * DAY:
                yield Arrival(
                    sector="ci",
                    group=f"{row['job']}-{number}-{repeat}",
                    at=repeat * week + created,
                    seconds=float(row["deletion_s"]) - created,
                    cpu_milli=int(row["cpu_milli"]),
                    memory_mib=int(row["memory_mib"]),
                )


def _batch(days: float) -> Iterator[Arrival]:
    """The last days of the trace, when most happens in it; pods without a GPU."""
    rows = [row for row in _rows(BATCH) if row["gpu"] == "0"]
    last = max(float(row["creation_s"]) for row in rows)
    for row in rows:
        at = float(row["creation_s"]) - (last - days * DAY)
        if at > 0 and int(row["cpu_milli"]) <= CPU_MAX["batch"]:
            yield Arrival(
                sector="batch",
                group=row["pod"],
                at=at,
                seconds=max(1.0, float(row["deletion_s"]) - float(row["creation_s"])),
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
            )


SHAPES = ((60, 1024), (10, 256), (150, 912), (500, 1024), (550, 1312), (2050, 2560), (6000, 6144))
"""Of services, CPU milli and memory MiB: the most frequent ones of the data."""
JOB_SHAPES = ((1000, 2048), (2000, 9000), (4000, 8192), (7000, 10240))
BATCH_SHAPES = ((12500, 57344), (32000, 49152), (8000, 30517), (16500, 51200))


def drawn(days: float, seed: int = 1) -> list[Arrival]:
    """A seeded workload of the same shape: rollouts by day, jobs on the hour, batches at random."""
    draw = Random(seed)
    found: list[Arrival] = []
    for number in range(90):
        cpu, memory = SHAPES[min(number // 14, len(SHAPES) - 1)]
        times = sorted(draw.uniform(0, days) for _ in range(max(1, round(days * 0.45))))
        times = [
            0.0,
            *(int(t) * DAY + draw.triangular(8, 18, 14) * 3600 for t in times),
            days * DAY,
        ]
        for begin, end in pairwise(times):
            found += [
                Arrival("services", f"app-{number}", begin, max(60.0, end - begin + 45),
                        cpu, memory, 1 if number % 3 else None)
                for _ in range(3)
            ]  # fmt: skip
    for number in range(round(days * 98)):
        cpu, memory = draw.choice(JOB_SHAPES)
        at = round(draw.uniform(0, days * 24)) * 3600 + draw.uniform(0, 600)
        found.append(Arrival("ci", f"job-{number}", at, draw.uniform(1500, 4000), cpu, memory))
    for number in range(round(days * 34)):
        cpu, memory = draw.choice(BATCH_SHAPES)
        length = min(30_000.0, draw.lognormvariate(6.0, 1.6))
        found.append(
            Arrival("batch", f"batch-{number}", draw.uniform(0, days * DAY), length, cpu, memory)
        )
    return [arrival for arrival in found if arrival.at < days * DAY]

"""Twelve minutes of work: services that grow and shrink, a wave of Jobs, and a burst of small ones.

Services are the largest Deployments of a production cluster, Jobs have the shapes of public CI jobs
(the data beside the repository).
"""

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded here
from typing import Literal

from tests.life.month.trace import DATA

SERVICES, CI_JOBS = "govuk_eks_workloads.csv", "k8s_prow_jobs.csv.gz"
SERVICES_MAX = 14
WAVE = 300
BURST = 1000
LARGEST = 8_000, 49_152
"""CPU milli and MiB of the largest Jobs that are taken."""

Spreading = Literal["", "zones", "nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A Deployment has so many replicas from now on."""

    at: float
    """In seconds from the begin."""
    name: str
    replicas: int
    cpu_milli: int
    memory_mib: int
    spreading: Spreading
    """Even over zones, at most one on a node, or without a rule."""
    away_max: int | None
    """What its disruption budget lets be away at once; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A Job is created."""

    at: float
    name: str
    pods: int
    cpu_milli: int
    memory_mib: int
    seconds: float
    """How long each of its pods runs."""
    protected: bool
    """Whether its owner annotated it as not to be disrupted."""


def present() -> bool:
    """Whether the data is on this machine."""
    return all((DATA / name).is_file() for name in (SERVICES, CI_JOBS))


def events(seed: int) -> list[Scaled | Started]:
    """All of it, in order of time.

    Raises:
        OSError: The data is not there.
    """
    draw = Random(seed)
    found: list[Scaled | Started] = [*_services(), *_wave(draw), *_others(draw)]
    return sorted(found, key=lambda each: (each.at, each.name))


def _services() -> Iterator[Scaled]:
    """Half of them grow threefold for four minutes; then others shrink to a third."""
    with (DATA / SERVICES).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["replicas"]) >= 3]
    rows.sort(key=lambda r: (-int(r["replicas"]) * int(r["cpu_milli"]), r["app"], r["component"]))
    spreadings: tuple[Spreading, ...] = ("zones", "nodes", "", "zones", "")
    for number, row in enumerate(rows[:SERVICES_MAX]):
        count = int(row["replicas"])
        steps = [(0.0, count)]
        if number % 2:
            steps += [(150.0, 3 * count), (390.0, count)]
        else:
            steps += [(390.0, max(1, count // 3))]
        away = row["pdb_max_unavailable"] or ("1" if number % 2 else "")
        for at, replicas in steps:
            yield Scaled(
                at=at,
                name=f"service-{number}",
                replicas=replicas,
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
                spreading=spreadings[number % len(spreadings)],
                away_max=int(away) if away else None,
            )
    for number in range(3):
        for at, replicas in ((310.0, 10), (390.0, 3)):
            yield Scaled(
                at=at,
                name=f"wide-{number}",
                replicas=replicas,
                cpu_milli=500 + 250 * number,
                memory_mib=1024 * (number + 1),
                spreading="nodes",
                away_max=2,
            )


def _wave(draw: Random) -> Iterator[Started]:
    """Within a minute and a half; they run one to four minutes."""
    with gzip.open(DATA / CI_JOBS, "rt", encoding="utf-8", newline="") as file:
        rows = [(int(r["cpu_milli"]), int(r["memory_mib"])) for r in csv.DictReader(file)]
    shapes = [(c, m) for c, m in rows if 0 < c <= LARGEST[0] and 0 < m <= LARGEST[1]]
    for number in range(WAVE):
        cpu_milli, memory_mib = draw.choice(shapes)
        yield Started(
            at=60.0 + 5.0 * draw.randrange(18),
            name=f"batch-{number}",
            pods=1,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            seconds=float(int(min(240.0, max(45.0, draw.lognormvariate(4.5, 0.5))))),
            protected=True,
        )


def _others(draw: Random) -> Iterator[Started]:
    """One every ten seconds, and the burst: a thousand small pods at the same moment."""
    for number in range(42):
        cpu_milli, memory_mib = draw.choice([(500, 1024), (1000, 2048), (2000, 4096)])
        yield Started(
            at=60.0 + 10.0 * number,
            name=f"ci-{number}",
            pods=1,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            seconds=float(draw.randint(45, 90)),
            protected=False,
        )
    for number in range(10):
        yield Started(
            at=240.0,
            name=f"burst-{number}",
            pods=BURST // 10,
            cpu_milli=100,
            memory_mib=256,
            seconds=60.0 + 10.0 * number,
            protected=False,
        )

"""Work of a small cluster that goes up and down: what is asked for, and when; drawn by a seed.

Pods select the size of their nodes. Where several sizes would do, which one is bought depends on
whether two pods come in the same second or the next, and that is no part of what is recorded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi, sin
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any, Literal

from reconciler.sandbox.cluster.settings import DURATION
from tests.e2e.scene import pod_spec, template

SERVICES = 6
WAVE_SECONDS = 1200.0
"""From one peak of the services to the next."""
SCALED_EACH_SECONDS = 20.0
JOBS_EACH_SECONDS = 6.0
BURST_PODS = 60

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that people ask for."""

    at_seconds: float
    kind: Literal["Deployment", "Job"]
    name: str
    spec: Json
    new: bool
    """Created; else its spec is patched."""


def varied_work(seconds: float, seed: int) -> list[Change]:
    """Deployments that follow a wave, Jobs at random, and two bursts, in order of time."""
    rng = Random(seed)
    changes = [*_services(seconds, rng), *_jobs(seconds, rng), *_bursts(seconds)]
    return sorted(changes, key=lambda change: change.at_seconds)


def _services(seconds: float, rng: Random) -> Iterator[Change]:
    for number in range(SERVICES):
        name = f"web-{number}"
        cpu = rng.choice(("250m", "500m", "1", "1500m"))
        memory = rng.choice(("512Mi", "1Gi", "3Gi"))
        phase, most, before = rng.uniform(0, 2 * pi), rng.randint(6, 14), 0
        at = float(number)
        while at < seconds:
            share = 0.5 + 0.5 * sin(2 * pi * at / WAVE_SECONDS + phase)
            replicas = max(1, round(1 + (most - 1) * share + rng.gauss(0, 0.5)))
            if replicas != before:
                pods = pod_spec(cpu, memory, nodeSelector={"size": "small"})
                whole = template({"app": name}, pods) if not before else {}
                spec = {"replicas": replicas, **whole}
                yield Change(at_seconds=at, kind="Deployment", name=name, spec=spec, new=not before)
            before = replicas
            at += SCALED_EACH_SECONDS


def _jobs(seconds: float, rng: Random) -> Iterator[Change]:
    at, number = rng.expovariate(1 / JOBS_EACH_SECONDS), 0
    while at < seconds:
        cpu = rng.choice(("250m", "500m", "1", "2", "2800m"))
        memory = rng.choice(("256Mi", "1Gi", "4Gi", "12Gi"))
        lasts = min(300, max(30, rng.lognormvariate(4.4, 0.6)))
        yield _job(at, f"batch-{number}", rng.randint(1, 6), cpu, memory, lasts, "medium")
        at += rng.expovariate(1 / JOBS_EACH_SECONDS)
        number += 1


def _bursts(seconds: float) -> Iterator[Change]:
    for number, share in enumerate((0.3, 0.7)):
        yield _job(share * seconds, f"burst-{number}", BURST_PODS, "700m", "1Gi", 120, "small")


def _job(at: float, name: str, pods: int, cpu: str, memory: str, lasts: float, size: str) -> Change:
    spec = pod_spec(cpu, memory, restartPolicy="Never", nodeSelector={"size": size})
    made = template({"app": name}, spec, {DURATION: f"{lasts:.0f}"})["template"]
    body = {
        "parallelism": pods,
        "completions": pods,
        "ttlSecondsAfterFinished": 60,
        "template": made,
    }
    return Change(at_seconds=at, kind="Job", name=name, spec=body, new=True)

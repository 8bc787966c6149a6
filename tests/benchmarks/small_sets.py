"""Small purchases of every day: a few pods of real shapes, a few EC2 sizes, drawn by number."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.benchmarks import clusters, pods
from tests.benchmarks.cases import packing_sets
from tests.builders import make_settings

PODS_MIN, PODS_MAX = 5, 60
SIZES_MIN, SIZES_MAX = 2, 12
GENERATED = "generated"
"""The source of shapes where the real ones are not on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallSet:
    """Pods that wait and fleets that may grow; nothing runs."""

    number: int
    source: str
    """Where the shapes come from."""
    shapes: tuple[tuple[int, int, int], ...]
    """CPU milli, memory MiB, count."""
    fleets: tuple[FleetSettings, ...]

    @property
    def pods(self) -> int:
        """How many wait."""
        return sum(count for _, _, count in self.shapes)

    def make(self) -> tuple[Snapshot, PlannerSettings]:
        """What the planner is given."""
        settings = make_settings(*self.fleets)
        return clusters.snapshot_of(pods.of_shapes(self.shapes), (), settings), settings


def sources() -> dict[str, list[tuple[int, int, int]]]:
    """Shapes by where they come from: real ones, or generated ones where those are absent."""
    generated = [(cpu, memory, 1) for cpu in pods.CPU_MILLI for memory in pods.MEMORY_MIB]
    return packing_sets() or {GENERATED: generated}


def small_set(number: int) -> SmallSet:
    """The set of a number, the same on every machine that has the same shapes.

    Every pod fits a node of at least one of the sizes.
    """
    draw = np.random.default_rng(number)
    named = sorted(sources().items())
    source, rows = named[int(draw.integers(len(named)))]
    fleets: tuple[FleetSettings, ...] = ()
    fitting: list[tuple[int, int, int]] = []
    while not fitting:
        size_count = int(draw.integers(SIZES_MIN, SIZES_MAX + 1))
        chosen = draw.choice(len(_sizes()), size_count, replace=False)
        fleets = tuple(_sizes()[int(i)] for i in sorted(chosen))
        fitting = [row for row in rows if any(_fits(fleet, row) for fleet in fleets)]
    weights = np.array([count for _, _, count in fitting], dtype=np.float64)
    count = int(draw.integers(PODS_MIN, PODS_MAX + 1))
    amounts = draw.multinomial(count, weights / weights.sum())
    shapes = tuple(
        (cpu, memory, int(n)) for (cpu, memory, _), n in zip(fitting, amounts, strict=True) if n
    )
    return SmallSet(number=number, source=source, shapes=shapes, fleets=fleets)


def _fits(fleet: FleetSettings, row: tuple[int, int, int]) -> bool:
    offered = fleet.options[0].resources
    return row[0] <= offered["cpu"] and row[1] * pods.MIB <= offered["memory"]


@cache
def _sizes() -> list[FleetSettings]:
    """The catalogue's current families without GPUs."""
    return list(clusters.catalogue_fleets().fleets())

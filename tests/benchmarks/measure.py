"""One measurement in a process of its own: `python -m tests.benchmarks.measure CASE SIZE`.

A process each, so that peak memory is the case's own. Writes one JSON object to stdout.
"""

import gc
import json
import resource
import sys
from dataclasses import asdict, dataclass
from time import perf_counter, process_time

from reconciler.model.actions import SetCapacity
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.capacity.search_cache import forget_searches
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from reconciler.records.plan import encode_plan
from tests.benchmarks import reference
from tests.benchmarks.cases import CASES

RUNS_MAX = 15
RUNS_MIN = 3
SECONDS_MAX = 3.0
"""Enough runs are enough after this time."""
_KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one case did at one size. Times in seconds, from decoded snapshot to plan."""

    case: str
    size: int
    """Which of the case's sizes."""
    pods: int
    """Pending pods."""
    first: float
    """Wall time of the first plan of the process: nothing is warm yet."""
    wall: tuple[float, ...]
    """Wall time of each later plan."""
    cpu: tuple[float, ...]
    """CPU time of the whole process for the same plans."""
    record: tuple[float, ...]
    """Wall time of writing a new plan as JSON, which reads its every placement."""
    peak_mib: float
    """The process's largest resident size: interpreter, snapshot and planning."""
    before_mib: float
    """The same before the first plan: interpreter and snapshot."""
    nodes: int
    """New nodes asked for."""
    cpus: float
    """Their vCPUs, reserved parts left out."""
    usd: float
    """What the new nodes cost per hour."""
    gap: float
    unplaceable: int
    reference: float
    """Pods per second of the reference."""


def measure(name: str, number: int) -> Measurement:
    """Run one case at one of its sizes."""
    case = CASES[name]
    size = case.sizes[number]
    snapshot, settings = case.make(size)
    gc.collect()
    before = _peak_mib()
    begin = perf_counter()
    made = plan(snapshot, settings)
    first = perf_counter() - begin
    peak = _peak_mib()
    wall: list[float] = []
    cpu: list[float] = []
    while len(wall) < RUNS_MIN or (len(wall) < RUNS_MAX and sum(wall) < SECONDS_MAX):
        gc.collect()
        forget_searches()
        cpu_begin, begin = process_time(), perf_counter()
        plan(snapshot, settings)
        wall.append(perf_counter() - begin)
        cpu.append(process_time() - cpu_begin)
        peak = max(peak, _peak_mib())
    nodes, cpus, usd = bought(made, settings)
    return Measurement(
        case=name,
        size=number,
        pods=size.pods,
        first=first,
        wall=tuple(wall),
        cpu=tuple(cpu),
        record=tuple(_record_seconds(snapshot, settings) for _ in range(RUNS_MIN)),
        peak_mib=peak,
        before_mib=before,
        nodes=nodes,
        cpus=cpus,
        usd=usd,
        gap=made.cost.gap,
        unplaceable=len(made.unplaceable),
        reference=reference.pods_per_second(snapshot, settings),
    )


def _record_seconds(snapshot: Snapshot, settings: PlannerSettings) -> float:
    made = plan(snapshot, settings)
    begin = perf_counter()
    encode_plan(made)
    return perf_counter() - begin


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB


def bought(made: Plan, settings: PlannerSettings) -> tuple[int, float, float]:
    """Nodes, vCPUs and USD per hour of everything that is asked for."""
    fleets = {fleet.name: fleet for fleet in settings.fleets()}
    raised = [a for a in made.actions if isinstance(a, SetCapacity) and a.policy == "scale-up"]
    nodes = {a.fleet: a.to_capacity - a.from_capacity for a in raised}
    cpus = sum(n * fleets[f].options[0].resources["cpu"] for f, n in nodes.items()) / 1000
    usd = sum(n * float(fleets[f].usd_per_hour or 0) for f, n in nodes.items())
    return sum(nodes.values()), cpus, usd


def main() -> None:
    """Measure what the command line names."""
    _, name, number = sys.argv
    sys.stdout.write(json.dumps(asdict(measure(name, int(number)))) + "\n")


if __name__ == "__main__":
    main()

"""`python -m tests.benchmarks hostile`: what one tenant's objects cost, read and planned.

`python -m tests.benchmarks.hostile_run SHAPE SIZE` measures one of them in its own process.
"""

import gc
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log
from time import perf_counter, process_time

from reconciler.machine.garbage import garbage_collection_paused
from reconciler.planner.planner import plan
from tests.benchmarks import hostile
from tests.benchmarks.hostile_pods import HOSTILE, NODES, PEACEFUL

NAME = "hostile"
TITLE = "One tenant's worst"
RUNS = 3
"""Processes for each size: what else the machine does only makes some of them slower."""
WHY = (
    f"{NODES} nodes of 15 fleets, 65 pods of another tenant, and objects of one namespace "
    "that each ask for something that no other does, or one pod with thousands of something, as "
    "the API server admits them. Time is from the objects' JSON to the finished plan, the first "
    f"of a process, and the quickest of {RUNS} processes. `others` are the other tenant's pods "
    "that got a place, `own` the hostile ones "
    "that did. The exponent is that of the CPU time, less that of a plan without the hostile "
    "objects, over their number, from the smallest to the largest size."
)
TIMEOUT_SECONDS = 300
CODES_MAX = 2
"""A pod that asks for a resource of its own is refused with a code of its own."""
LEAST_SECONDS = 0.05
"""Below that the growth of a time says nothing."""
_KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One plan of the process, and what it was made of."""

    read: float
    """Seconds to decode all objects."""
    planned: float
    cpu: float
    """CPU seconds of both, which what else the machine does makes no longer."""
    peak_mib: float
    before_mib: float
    """Interpreter and JSON."""
    others: int
    """Pods of the other tenant with a place."""
    placed: int
    """Pods of the hostile one with a place."""
    codes: tuple[str, ...]
    """Why others of them have none."""

    @property
    def seconds(self) -> float:
        """Both."""
        return self.read + self.planned


def measure(shape: str, count: int) -> Measured:
    """Read and plan once."""
    made = hostile.SHAPES[shape].make(count) if shape else []
    objects = [hostile.raw(each) for each in [*made, *hostile.peaceful()]]
    gc.collect()
    before, cpu_begin, begin = _peak_mib(), process_time(), perf_counter()
    snapshot, settings = hostile.world(objects)
    read = perf_counter() - begin
    begin = perf_counter()
    with garbage_collection_paused():  # as the loop and the command plan
        found = plan(snapshot, settings)
    planned, cpu = perf_counter() - begin, process_time() - cpu_begin
    placed = [p.pod.namespace for p in found.placements if p.moved_from is None]
    refused = [u for u in found.unplaceable if u.pod.namespace == HOSTILE]
    return Measured(
        read=read,
        planned=planned,
        cpu=cpu,
        peak_mib=_peak_mib(),
        before_mib=before,
        others=placed.count(PEACEFUL),
        placed=placed.count(HOSTILE),
        codes=tuple(sorted({u.reasons[0].code for u in refused})),
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB


def measured_apart(shape: str, count: int) -> Measured:
    """The measurement in processes of their own, the one that took least CPU time."""
    return min((_measured_once(shape, count) for _ in range(RUNS)), key=lambda each: each.cpu)


def _measured_once(shape: str, count: int) -> Measured:
    argv = [sys.executable, "-m", "tests.benchmarks.hostile_run", shape, str(count)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    found = json.loads(done.stdout)
    return Measured(**{**found, "codes": tuple(found["codes"])})


def exponent(times: Sequence[float], sizes: Sequence[int], base: float) -> float | None:
    """How time grows with size; None where there is next to none."""
    first, last = times[0] - base, times[-1] - base
    if first <= 0 or last < LEAST_SECONDS:
        return None
    return log(last / first) / log(sizes[-1] / sizes[0])


def _few(codes: Sequence[str]) -> str:
    """The codes, as many as a cell holds."""
    shown = ", ".join(codes[:CODES_MAX])
    return shown if len(codes) <= CODES_MAX else f"{shown} and {len(codes) - CODES_MAX:,} more"


def run() -> str:
    """Measure all shapes; their Markdown, while lines appear on stdout."""
    base = measured_apart("", 0)
    heads = (
        "shape",
        "number",
        "read and planned",
        "CPU",
        "exponent",
        "peak MiB",
        "others",
        "own",
        "codes",
    )
    lines = [f"### {TITLE} (`{NAME}`)", "", WHY, ""]
    lines += ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for name, shape in hostile.SHAPES.items():
        sizes = shape.sizes
        found = [measured_apart(name, size) for size in sizes]
        grows = exponent([each.cpu for each in found], sizes, base.cpu)
        last = found[-1]
        cells = (
            name,
            " / ".join(f"{size:,}" for size in sizes),
            " / ".join(f"{each.seconds * 1000:,.0f}" for each in found) + " ms",
            " / ".join(f"{each.cpu * 1000:,.0f}" for each in found) + " ms",
            "" if grows is None else f"{grows:.2f}",
            f"{last.peak_mib:,.0f} ({last.before_mib:,.0f} before)",
            f"{last.others}",
            f"{last.placed:,}",
            _few(last.codes),
        )
        lines.append("| " + " | ".join(cells) + " |")
        sys.stdout.write("  " + "; ".join(cells) + "\n")
        sys.stdout.flush()
    lines += ["", f"- without any hostile object: {base.seconds * 1000:,.0f} ms", ""]
    return "\n".join(lines)


def main() -> None:
    """Measure what the command line names."""
    _, shape, count = sys.argv
    sys.stdout.write(json.dumps(asdict(measure(shape, int(count)))) + "\n")


if __name__ == "__main__":
    main()

"""Small purchases of every day: `python -m tests.benchmarks small`.

300 random sets of real pod shapes over a few EC2 sizes. The judge is CP-SAT, which needs OR-Tools
(`pip install ortools`) and up to two hours; without it the table says what the plan itself proves.
"""

import gc
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

from reconciler.planner.capacity.search_cache import forget_searches
from reconciler.planner.planner import plan
from tests.benchmarks.measure import bought
from tests.benchmarks.pods import MIB
from tests.benchmarks.report import percentile
from tests.benchmarks.small_sets import GENERATED, SmallSet, small_set

NAME = "small"
TITLE = "Small purchases of every day"
WHY = (
    "300 random sets of 5 to 60 pods of real shapes, nothing running, over 2 to 12 EC2 sizes of "
    "the catalogue at on-demand prices: how far plans are from the optimum. The judge is CP-SAT "
    "with 20 s and two threads for each set."
)
SETS = 300
MICRO = 1_000_000
FAR = 0.02
"""Above the optimum, relatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a plan bought for a set."""

    made: SmallSet
    seconds: float
    cpu_seconds: float
    usd_micro: int
    gap: float


def run() -> str:
    """Measure; its Markdown, while a line appears on stdout."""
    planned = [_planned(number) for number in range(SETS)]
    judged = _judged(planned)
    cells = _cells(planned, judged)
    sys.stdout.write("  " + "; ".join(f"{head} {cell}" for head, cell in cells.items()) + "\n")
    table = [
        "| " + " | ".join(cells) + " |",
        "|" + " --- |" * len(cells),
        "| " + " | ".join(cells.values()) + " |",
    ]
    source = "generated shapes, as the real ones are not on this machine"
    if all(each.made.source != GENERATED for each in planned):
        source = "shapes of public clusters (`packing_sets.csv`)"
    lines = [f"### {TITLE} (`{NAME}`)", "", WHY, "", *table, "", f"- Pods are of {source}."]
    return "\n".join(lines) + "\n"


def _planned(number: int) -> Planned:
    made = small_set(number)
    snapshot, settings = made.make()
    gc.collect()
    forget_searches()
    began, cpu_began = perf_counter(), process_time()
    found = plan(snapshot, settings)
    seconds, cpu_seconds = perf_counter() - began, process_time() - cpu_began
    _, _, usd = bought(found, settings)
    return Planned(
        made=made,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        usd_micro=round(usd * MICRO),
        gap=found.cost.gap,
    )


def _judged(planned: list[Planned]) -> list[dict[str, Any]] | None:
    """The judge's verdict on each; None where it is not installed."""
    if importlib.util.find_spec("ortools") is None:
        return None
    argv = [sys.executable, "-m", "tests.benchmarks.small_judge"]
    asked = json.dumps([_case(each) for each in planned])
    done = subprocess.run(argv, input=asked, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _case(planned: Planned) -> dict[str, Any]:
    """A set in the judge's words: CPU milli, memory MiB, pods."""
    options = [fleet.options[0] for fleet in planned.made.fleets]
    sizes = [
        (o.resources["cpu"], o.resources["memory"] // MIB, o.resources["pods"]) for o in options
    ]
    return {
        "shapes": [(cpu, memory, 1, count) for cpu, memory, count in planned.made.shapes],
        "sizes": sizes,
        "prices": [round(o.usd_per_hour * MICRO) for o in options if o.usd_per_hour is not None],
        "usd_micro": planned.usd_micro,
    }


def _cells(planned: list[Planned], judged: list[dict[str, Any]] | None) -> dict[str, str]:
    times = [each.seconds for each in planned]
    cpu = [each.cpu_seconds for each in planned]
    proven = sum(each.gap == 0 for each in planned)
    cells = {
        "sets": f"{len(planned)}",
        "own gap 0": f"{proven / len(planned):.1%}",
        "largest own gap": f"{max(each.gap for each in planned):.1%}",
        "p50": f"{median(times) * 1000:,.0f} ms",
        "p99": f"{percentile(times, 0.99) * 1000:,.0f} ms",
        "CPU p50": f"{median(cpu) * 1000:,.0f} ms",
        "CPU p99": f"{percentile(cpu, 0.99) * 1000:,.0f} ms",
    }
    if judged is None:
        return {**cells, "judge": "not installed"}
    decided = [(p, j) for p, j in zip(planned, judged, strict=True) if j["proven"] or p.gap == 0]
    above = [
        each.usd_micro / verdict["usd_micro"] - 1
        for each, verdict in zip(planned, judged, strict=True)
        if verdict["usd_micro"] is not None
    ]
    optimal = sum(p.gap == 0 or j["usd_micro"] == p.usd_micro for p, j in decided)
    return {
        **cells,
        "decided by judge or own proof": f"{len(decided)}",
        "optimal of these": f"{optimal / len(decided):.1%}",
        "proofs contradicted": f"{_contradicted(planned, judged)}",
        "over 2 % above the judge's": f"{sum(each > FAR for each in above)}",
        "worst": f"{max(above):.1%}",
    }


def _contradicted(planned: list[Planned], judged: list[dict[str, Any]]) -> int:
    """Plans that call themselves the optimum where the judge found a cheaper purchase."""
    return sum(
        each.gap == 0 and (verdict["usd_micro"] or each.usd_micro) < each.usd_micro
        for each, verdict in zip(planned, judged, strict=True)
    )


if __name__ == "__main__":
    sys.stdout.write(run())

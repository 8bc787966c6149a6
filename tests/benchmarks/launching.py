"""What is bought while nodes launch: `python -m tests.benchmarks launching`.

A purchase is planned, and planned again while its nodes are on their way: whether the second plan
buys more. And the pods of a purchase come in three parts: what all plans together buy.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random  # noqa: TID251 - a draw that is named by its number
from time import process_time

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.capacity.search_cache import forget_searches
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.benchmarks import clusters, pods
from tests.benchmarks.cases import packing_sets
from tests.benchmarks.small_sets import small_set
from tests.builders import make_cloud, make_fleet
from tests.properties.reached import asked_for

NAME = "launching"
TITLE = "What is bought while nodes launch"
WHY = (
    "Until nodes have joined, each plan has to find the places of the pods that they were bought "
    "for. `again` is what a second plan buys, with the same pods waiting and all nodes of the "
    "first on their way. In three parts: the pods come one third after the other, 5 s apart, and "
    "no node joins meanwhile; what is bought in the end, against one purchase for all."
)
SMALL = 300
IN_PARTS = 60
"""Of the small sets, played in parts."""
PARTS = 3
SHAPES_OF = 1_000
"""Pods of each set of real shapes."""
MIXES = (1_000, 5_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Two plans of the same pods, the second while the nodes of the first launch."""

    nodes: int
    usd_per_hour: float
    more_nodes: int
    more_usd_per_hour: float
    cpu_seconds: float
    """Of the first plan, and"""
    again_cpu_seconds: float
    """of the second."""


def run() -> str:
    """Measure; its Markdown, while lines appear on stdout."""
    rows = [_row(f"{SMALL} small purchases", [_again(*_small(n)) for n in range(SMALL)])]
    for name, shapes in sorted(packing_sets().items()):
        drawn = pods.of_shapes(_drawn(shapes, SHAPES_OF))
        rows.append(_row(f"{SHAPES_OF:,} pods of {name}", [_again(drawn, clusters.usual_fleets())]))
    for count in MIXES:
        made = pods.karpenter_mix_real(count)
        rows.append(
            _row(f"{count:,} pods of Karpenter's mix", [_again(made, clusters.karpenter_fleets())])
        )
    parts = [_in_parts(*_small(number)) for number in range(IN_PARTS)]
    excess = sum(bought for bought, _ in parts) / sum(once for _, once in parts) - 1
    compared = f"{excess:.1%} more expensive than in one."
    said = f"- {IN_PARTS} of the small purchases in {PARTS} parts: {compared}"
    sys.stdout.write(f"  {said}\n")
    head = list(rows[0])
    table = [head, ["---"] * len(head), *(list(row.values()) for row in rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    return "\n".join([f"### {TITLE} (`{NAME}`)", "", WHY, "", *lines, "", said]) + "\n"


def _small(number: int) -> tuple[Sequence[Pod], PlannerSettings]:
    snapshot, settings = small_set(number).make()
    return snapshot.cluster.pods, settings


def _drawn(shapes: Sequence[tuple[int, int, int]], count: int) -> list[tuple[int, int, int]]:
    """So many pods, as often of each shape as it is in the set."""
    chosen = Random(1).choices(shapes, weights=[n for _, _, n in shapes], k=count)
    amounts: dict[tuple[int, int], int] = {}
    for cpu, memory, _ in chosen:
        amounts[cpu, memory] = amounts.get((cpu, memory), 0) + 1
    return [(cpu, memory, n) for (cpu, memory), n in sorted(amounts.items())]


def _before(waiting: Iterable[Pod], settings: PlannerSettings) -> Snapshot:
    """Nothing runs, and EC2 has answered that every fleet is empty."""
    cloud = make_cloud(*(make_fleet(fleet, 0) for fleet in settings.fleets()))
    return replace(clusters.snapshot_of(waiting, (), settings), cloud=cloud)


def _again(waiting: Iterable[Pod], settings: PlannerSettings) -> Again:
    snapshot = _before(waiting, settings)
    forget_searches()
    begun = process_time()
    first = plan(snapshot, settings)
    bought = process_time()
    reached = asked_for(snapshot, first)
    asked = process_time()
    second = plan(reached, settings)
    ended = process_time()
    return Again(
        nodes=_nodes(first),
        usd_per_hour=first.cost.hourly_usd_after,
        more_nodes=_nodes(second) - _nodes(first),
        more_usd_per_hour=second.cost.hourly_usd_after - first.cost.hourly_usd_after,
        cpu_seconds=bought - begun,
        again_cpu_seconds=ended - asked,
    )


def _in_parts(waiting: Sequence[Pod], settings: PlannerSettings) -> tuple[float, float]:
    """USD per hour of what is bought for the pods in parts, and in one purchase."""
    every = list(waiting)
    Random(len(every)).shuffle(every)
    once = plan(_before(every, settings), settings).cost.hourly_usd_after
    snapshot, bought = _before((), settings), 0.0
    for part in range(1, PARTS + 1):
        come = tuple(every[: -(-len(every) * part // PARTS)])
        snapshot = replace(
            snapshot,
            at=snapshot.at + timedelta(seconds=5),
            cluster=replace(snapshot.cluster, pods=come),
        )
        made = plan(snapshot, settings)
        snapshot, bought = asked_for(snapshot, made), made.cost.hourly_usd_after
    return bought, once


def _nodes(made: Plan) -> int:
    return sum(fleet.target for fleet in made.fleets)


def _row(name: str, found: Sequence[Again]) -> dict[str, str]:
    usd, more = sum(a.usd_per_hour for a in found), sum(a.more_usd_per_hour for a in found)
    cells = {
        "purchases": name,
        "nodes": f"{sum(a.nodes for a in found):,}",
        "again": f"{sum(a.more_nodes for a in found):,}",
        "purchases repeated": f"{sum(a.more_nodes > 0 for a in found) / len(found):.0%}",
        "more expensive": f"{more / usd:.1%}",
        "CPU": f"{1000 * sum(a.cpu_seconds for a in found) / len(found):,.0f} ms",
        "CPU again": f"{1000 * sum(a.again_cpu_seconds for a in found) / len(found):,.0f} ms",
    }
    sys.stdout.write("  " + "; ".join(f"{head} {cell}" for head, cell in cells.items()) + "\n")
    sys.stdout.flush()
    return cells

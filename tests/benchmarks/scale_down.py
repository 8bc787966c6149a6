"""Cluster Autoscaler's whole-cycle scale-down: `python -m tests.benchmarks scale-down`.

2,000 nodes of one group with 40 pods of 1 % of a node each: 800 nodes hold them all, so 1,200 can
go. Limits on how many at once are lifted, here as there; a plan simulates the drains of at most
`EXAMINED_MAX` nodes. Every pod that moves has a place that is reserved for it in the same plan.
"""

import gc
import json
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter, process_time

from reconciler.model.actions import EvictPod, begins_drain
from reconciler.model.snapshot import Snapshot
from reconciler.planner.capacity.search_cache import forget_searches
from reconciler.planner.disruption.examined_nodes import EXAMINED_MAX
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)

NAME = "scale-down"
TITLE = "Cluster Autoscaler's whole-cycle scale-down"
WHY = (
    "2,000 nodes of one group with 40 ReplicaSet pods of 1 % of a node each: 1,200 can go. Limits "
    f"on how many at once are lifted, but a plan simulates the drains of {EXAMINED_MAX} nodes and "
    "leaves the others to later ones. Every pod that moves has a place on a node that stays."
)
NODES = 2000
PODS_PER_NODE = 40
RUNS = 3
TIMEOUT_SECONDS = 600
THEIRS = (
    "Cluster Autoscaler, the same case on a machine of the same kind: 30 s a cycle, in which it "
    "simulates the removal of all nodes, and 7.5 GB"
)
_KIB_PER_MIB = 1024


def scene(nodes: int = NODES) -> tuple[Snapshot, PlannerSettings]:
    """The full cluster, and a config that lets every unneeded node go at once."""
    limits = ScaleInSettings(unneeded_seconds=0, non_empty_at_once_max=nodes)
    fleet = make_fleet_settings(cpu=10, memory="10Gi", pods=110, scale_in=limits)
    members = [make_node(f"node-{number:04}", fleet) for number in range(nodes)]
    live = make_fleet(fleet, nodes)
    pods = [
        pod
        for node in members
        for pod in make_pods(
            PODS_PER_NODE, node.name, node=node.name, cpu="100m", memory="100Mi", ready=True
        )
    ]
    cloud = make_cloud(live, instances=[make_instance(node, live) for node in members])
    return make_snapshot(*members, *pods, cloud=cloud, relists=2), make_settings(fleet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run in a process of its own; times in seconds, from decoded snapshot to plan."""

    first: float
    """Wall time of the process's first plan."""
    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    leaving: int
    """Nodes whose drain the plan begins."""
    moved: int
    """Pods that it evicts."""
    placed: int
    """Those of them with a reserved destination."""
    peak_mib: float
    before_mib: float
    """The interpreter and the snapshot."""


def measure(nodes: int = NODES) -> Measured:
    """Plan several times."""
    snapshot, settings = scene(nodes)
    gc.collect()
    before, begin = _peak_mib(), perf_counter()
    made = plan(snapshot, settings)
    first = perf_counter() - begin
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(RUNS):
        gc.collect()
        forget_searches()
        cpu_begin, begin = process_time(), perf_counter()
        plan(snapshot, settings)
        wall.append(perf_counter() - begin)
        cpu.append(process_time() - cpu_begin)
    moved = {action.pod for action in made.actions if isinstance(action, EvictPod)}
    placed = {
        placement.pod for placement in made.placements if placement.moved_from and placement.node
    }
    return Measured(
        first=first,
        wall=tuple(wall),
        cpu=tuple(cpu),
        leaving=sum(begins_drain(action) for action in made.actions),
        moved=len(moved),
        placed=len(moved & placed),
        peak_mib=_peak_mib(),
        before_mib=before,
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB


def measured_apart() -> Measured:
    """The measurement in a process of its own, so that its peak memory is its own."""
    argv = [sys.executable, "-m", "tests.benchmarks.scale_down"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    return Measured(**json.loads(done.stdout))


def run() -> str:
    """Measure; its Markdown, while a line appears on stdout."""
    found = measured_apart()
    cells = {
        "size": f"{NODES:,} nodes with {NODES * PODS_PER_NODE:,} pods",
        "first": f"{found.first * 1000:,.0f} ms",
        "p50": f"{median(found.wall) * 1000:,.0f} ms",
        "CPU p50": f"{median(found.cpu) * 1000:,.0f} ms",
        "nodes that go": f"{found.leaving:,}",
        "pods moved": f"{found.moved:,}",
        "with a place": f"{found.placed:,}",
        "peak MiB": f"{found.peak_mib:,.0f} ({found.before_mib:,.0f} before)",
    }
    sys.stdout.write("  " + "; ".join(f"{head} {cell}" for head, cell in cells.items()) + "\n")
    table = [
        "| " + " | ".join(cells) + " |",
        "|" + " --- |" * len(cells),
        "| " + " | ".join(cells.values()) + " |",
    ]
    return "\n".join([f"### {TITLE} (`{NAME}`)", "", WHY, "", *table, "", f"- {THEIRS}"]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure())) + "\n")

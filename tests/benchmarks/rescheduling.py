"""What spot rescheduler and descheduler add to a plan: `… tests.benchmarks rescheduling`."""

import gc
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from statistics import median
from time import process_time

from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Node, Owner, Pod, PodSpec, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.capacity.search_cache import forget_searches
from reconciler.planner.descheduler_settings import (
    DeschedulerSettings,
    FailedPods,
    InterPodAntiAffinity,
    LowNodeUtilization,
    NodeAffinity,
    NodeTaints,
    PodLifeTime,
    PolicyArguments,
    Profile,
    RemoveDuplicates,
    TooManyRestarts,
    TopologySpread,
)
from reconciler.planner.disruption_settings import NodeLabel, SpotRescheduler
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.benchmarks import clusters, pods
from tests.benchmarks.cases import Made
from tests.benchmarks.report import percentile
from tests.builders import ago, labelled, make_node, make_settings

NAME = "rescheduling"
TITLE = "Spot rescheduler and descheduler"
WHY = (
    "1,000 nodes (500 on-demand, 500 spot) with 30,000 pods of 600 owners, of which a sixth spread "
    "over zones, a sixth over nodes, and a sixth have anti-affinity. CPU time of a plan without "
    "and with them, in turn; each plan is a second later than the one before."
)
NODES, PODS_PER_NODE, OWNERS, ROUNDS = 1000, 30, 600, 15
DAY = 86_400.0
SHAPES = ((100, 256), (150, 512), (200, 512), (250, 1024))
"""CPU milli and memory MiB."""
RULES = (None, None, None, pods.zonal_spread, pods.hostname_spread, pods.hostname_anti_affinity)
SPOT = SpotRescheduler(
    on_demand=NodeLabel(key="lifecycle", value="OnDemand"),
    spot=NodeLabel(key="lifecycle", value="Ec2Spot"),
)
POLICIES: tuple[PolicyArguments, ...] = (
    FailedPods(),
    TooManyRestarts(threshold=10),
    PodLifeTime(seconds_max=30 * DAY),
    NodeTaints(),
    NodeAffinity(preferred=True),
    InterPodAntiAffinity(),
    RemoveDuplicates(),
    TopologySpread(soft=True),
    LowNodeUtilization(
        thresholds={"cpu": 20, "memory": 20}, target_thresholds={"cpu": 80, "memory": 80}
    ),
)
DESCHEDULER = DeschedulerSettings(profiles=(Profile(policies=POLICIES),), interval_seconds=300)
DISLIKED = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    tainted: bool = True
    """Whether on-demand nodes carry the PreferNoSchedule taint: else none can be emptied."""
    old: int = 0
    """Pods that are older than they may get."""
    spot: SpotRescheduler | None = None
    descheduler: DeschedulerSettings | None = None


ROWS = (
    Row(what="spot rescheduler, a node is emptied", spot=SPOT),
    Row(what="spot rescheduler, no node can be", tainted=False, spot=SPOT),
    Row(what="descheduler, nothing to evict", descheduler=DESCHEDULER),
    Row(what="descheduler, 200 pods to evict", old=200, descheduler=DESCHEDULER),
    Row(what="both, no node and no pod can go", tainted=False, spot=SPOT, descheduler=DESCHEDULER),
)


def run() -> str:
    """Measure; its Markdown, while lines appear on stdout."""
    head = ("case", "without, p50", "with, p50", "added, p50", "added, p99", "pods evicted")
    lines = []
    for row in ROWS:
        lines.append((row.what, *_measured(row)))
        sys.stdout.write("  " + "; ".join(map(" ".join, zip(head, lines[-1], strict=True))) + "\n")
        sys.stdout.flush()
    table = ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *lines)]
    return "\n".join([f"### {TITLE} (`{NAME}`)", "", WHY, "", *table]) + "\n"


def _measured(row: Row) -> tuple[str, ...]:
    """Plans without and with in turn, so that both meet the same machine."""
    snapshot, without = make(tainted=row.tainted, old=row.old)
    settings = replace(without, spot_rescheduler=row.spot, descheduler=row.descheduler)
    plan(snapshot, without)
    plan(snapshot, settings)
    bare, whole, evicted = [], [], 0
    for number in range(ROUNDS):
        later = replace(snapshot, at=snapshot.at + timedelta(seconds=number))
        bare.append(_cpu_seconds(later, without)[0])
        seconds, made = _cpu_seconds(later, settings)
        whole.append(seconds)
        evicted = sum(isinstance(action, EvictPod) for action in made.actions)
    added = [each - median(bare) for each in whole]
    times = (median(bare), median(whole), median(added), percentile(added, 0.99))
    return (*(f"{1000 * seconds:.0f} ms" for seconds in times), f"{evicted:,}")


def _cpu_seconds(snapshot: Snapshot, settings: PlannerSettings) -> tuple[float, Plan]:
    gc.collect()
    forget_searches()
    begun_at = process_time()
    made = plan(snapshot, settings)
    return process_time() - begun_at, made


def settings_of() -> PlannerSettings:
    """An on-demand fleet and a spot fleet in each of three zones, of 8 CPUs."""
    fleets = []
    for kind, price in (("steady", "0.5"), ("spot", "0.2")):
        for zone in clusters.ZONES:
            fleet = clusters.own_fleet(kind, 8000, 64 * clusters.GIB, 110, Decimal(price), zone)
            lifecycle = "Ec2Spot" if kind == "spot" else "OnDemand"
            labels = FrozenMap({**fleet.labels, "lifecycle": lifecycle})
            fleets.append(replace(fleet, spot=kind == "spot", labels=labels))
    return make_settings(*fleets)


def make(*, tainted: bool = True, old: int = 0, nodes: int = NODES) -> Made:
    """Return a cluster at rest, every second node a spot node (see `Row`)."""
    settings = settings_of()
    fleets = {kind: [f for f in settings.fleets() if f.size == kind] for kind in ("steady", "spot")}
    made: list[Node] = []
    for number in range(nodes):
        kind = "spot" if number % 2 else "steady"
        fleet = fleets[kind][(number // 2) % len(fleets[kind])]
        taints = (DISLIKED,) if tainted and kind == "steady" else ()
        made.append(make_node(f"node-{number:05}", fleet, zone=fleet.zone, taints=taints))
    return clusters.snapshot_of(_pods(made, old), made, settings), settings


def _pods(nodes: list[Node], old: int) -> list[Pod]:
    """Every node has 30 pods of different owners; three of six owners have a rule."""
    names = [f"app-{number:03}" for number in range(OWNERS)]
    specs = [_spec(number, name) for number, name in enumerate(names)]
    owners = [Owner(kind="ReplicaSet", name=name, uid=name) for name in names]
    labels = [labelled(app=name) for name in names]
    made: list[Pod] = []
    for number in range(PODS_PER_NODE * len(nodes)):
        owner = number % OWNERS
        born = ago((40 if number < old else 1) * DAY)
        made.append(
            Pod(
                key=PodKey(namespace=f"ns-{owner % 20}", name=f"{names[owner]}-{number}"),
                spec=specs[owner],
                node_name=nodes[number // PODS_PER_NODE].name,
                phase="Running",
                ready=True,
                owner=owners[owner],
                labels=labels[owner],
                created_at=born,
                started_at=born,
            )
        )
    return made


def _spec(number: int, name: str) -> PodSpec:
    """What the pods of one owner are made of."""
    cpu, memory = SHAPES[number % len(SHAPES)]
    base, rule = pods.plain(cpu, memory * pods.MIB), RULES[number % len(RULES)]
    return base if rule is None else rule(base, name)

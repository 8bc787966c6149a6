"""The benchmark's cases: what each is for, its sizes, and how its snapshot is made."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.model.cluster import Pod
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings
from tests.benchmarks import clusters, pods

DATA = Path(__file__).parents[3] / "shared" / "data" / "packing_sets.csv"
"""Beside the repository; not part of it."""
NODE_PODS = 30
"""Running pods per node in a full cluster."""
HALF = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large one run of a case is."""

    pods: int
    """Pending."""
    nodes: int = 0
    per_node: int = 0
    """Running pods on each node."""
    part: str = ""
    """Which of several inputs, where a case has those."""

    @property
    def label(self) -> str:
        """For people: `1,000 pods on 5,000 nodes`."""
        what = f"{self.part}: {self.pods:,} pods" if self.part else f"{self.pods:,} pods"
        if not self.nodes:
            return what
        running = f" with {self.nodes * self.per_node:,} running" if self.per_node else ""
        return f"{what} on {self.nodes:,} nodes{running}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What another system was measured at, on a machine of the same kind."""

    name: str
    pods_per_second: float
    usd: float | None = None
    """What it bought, at the prices of the case."""
    remark: str = ""


Made = tuple[Snapshot, PlannerSettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One benchmark."""

    title: str
    why: str
    """What it stands for, with the figures of others where there are any."""
    sizes: tuple[Size, ...]
    make: Callable[[Size], Made]
    quick: int = 1
    """How many of the sizes `--quick` runs."""
    peers: Mapping[str, Peer] = field(default_factory=dict)
    """By size label."""
    data: Path | None = None
    """The file that it needs, if any."""


def _karpenter(size: Size) -> Made:
    settings = clusters.karpenter_fleets()
    return clusters.snapshot_of(pods.karpenter_mix(size.pods), (), settings), settings


def _karpenter_real(size: Size) -> Made:
    settings = clusters.karpenter_fleets()
    return clusters.snapshot_of(pods.karpenter_mix_real(size.pods), (), settings), settings


def _estimator(size: Size) -> Made:
    settings = clusters.one_fleet(16_000, 64 * clusters.GIB, 110)
    return clusters.snapshot_of(pods.estimator_shapes(size.pods), (), settings), settings


def _identical(size: Size) -> Made:
    settings = clusters.one_fleet(50 * 100, 50 * 256 * pods.MIB, 110)
    return clusters.snapshot_of(pods.uniform(size.pods, 100, 256), (), settings), settings


def _populated(size: Size, pending: list[Pod]) -> Made:
    settings = clusters.usual_fleets()
    nodes = clusters.nodes_of(settings, size.nodes)
    names = [node.name for node in nodes]
    share = {"cpu": 8000 // NODE_PODS, "memory": 64 * clusters.GIB // NODE_PODS}
    busy = pods.running(size.per_node * size.nodes, names, share) if nodes else []
    return clusters.snapshot_of([*busy, *pending], nodes, settings), settings


def _cycle(size: Size) -> Made:
    return _populated(size, pods.mix_of_six(size.pods, clusters.ZONES))


def _uniform(size: Size) -> Made:
    return _populated(size, pods.uniform(size.pods))


def _real(size: Size) -> Made:
    settings = clusters.catalogue_fleets()
    shapes = packing_sets()[size.part]
    return clusters.snapshot_of(pods.of_shapes(shapes), (), settings), settings


def _different(size: Size) -> Made:
    settings = clusters.catalogue_fleets(burstable=False)
    return clusters.snapshot_of(pods.different(size.pods), (), settings), settings


def _even(size: Size) -> Made:
    settings = clusters.usual_fleets()
    spec = pods.hostname_spread(pods.plain(100, 4096 * pods.MIB), "even")
    made = [pods.pod(i, spec, pods.app_labels("even")) for i in range(size.pods)]
    return clusters.snapshot_of(made, (), settings), settings


def packing_sets() -> dict[str, list[tuple[int, int, int]]]:
    """The real pod shapes by set: CPU milli, memory MiB, count; empty when the data is absent."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    if DATA.is_file():
        with DATA.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                shape = int(row["cpu_milli"]), int(row["memory_mib"]), int(row["count"])
                found.setdefault(row["set"], []).append(shape)
    return found


def _real_sizes() -> tuple[Size, ...]:
    return tuple(
        Size(part=name, pods=sum(count for _, _, count in shapes))
        for name, shapes in sorted(packing_sets().items())
    )


_GRID = tuple(
    Size(pods=count, nodes=nodes, per_node=HALF if nodes else 0)
    for nodes in (0, 1000, 5000)
    for count in (1000, 10_000, 30_000, 150_000)
)

CASES: Mapping[str, Case] = {
    "karpenter-mix": Case(
        title="The mix of Karpenter's scheduling benchmark",
        why=(
            "One sector, 400 own sizes in three zones (1,200 fleets), no nodes; a fifth each of "
            "plain pods, zonal spread, hostname spread (one label per kind), zonal self-affinity "
            "(a label one of seven) and hostname anti-affinity (one label: a node each)."
        ),
        sizes=(Size(pods=1000), Size(pods=5000), Size(pods=10_000)),
        make=_karpenter,
        quick=2,
        peers={
            "1,000 pods": Peer(
                name="Karpenter 1.14",
                pods_per_second=372,
                usd=1087 * float(clusters.KARPENTER_USD_PER_CPU),
                remark="1,087 vCPU",
            ),
            "5,000 pods": Peer(
                name="Karpenter 1.14",
                pods_per_second=391,
                usd=5580 * float(clusters.KARPENTER_USD_PER_CPU),
                remark="5,580 vCPU",
            ),
        },
    ),
    "karpenter-mix-real": Case(
        title="The same mix with Karpenter's own labels",
        why=(
            "As `karpenter-mix`, but the first three kinds carry one of seven letters, and each "
            "spread constraint selects a letter drawn apart from the pod's own. Karpenter 1.14 "
            "buys 1.12 vCPU for each pod; resources and a node for each pod that must be apart ask "
            "for 0.68, what is reserved on nodes left out. The bound knows no rules on zones and "
            "spreads."
        ),
        sizes=(Size(pods=1000), Size(pods=10_000), Size(pods=50_000)),
        make=_karpenter_real,
    ),
    "estimator": Case(
        title="Cluster Autoscaler's estimator case",
        why="One fleet of 16 vCPU, 64 GiB and 110 pods; 20 shapes. 985 nodes are the least.",
        sizes=(Size(pods=30_000),),
        make=_estimator,
    ),
    "identical": Case(
        title="Cluster Autoscaler's whole-cycle scale-up",
        why="Identical pods, 50 to a node, one empty group: 1,000 nodes are wanted.",
        sizes=(Size(pods=50_000),),
        make=_identical,
        peers={
            "50,000 pods": Peer(
                name="Cluster Autoscaler",
                pods_per_second=50_000 / 16,
                remark="16 s a cycle, 7 GB allocated",
            )
        },
    ),
    "cycle": Case(
        title="A whole cycle on a full cluster",
        why=(
            "30 running pods on every node (a tenth of the applications spread over zones, a tenth "
            "one per node), EC2's answers about every instance, and a pending mix of six."
        ),
        sizes=(
            Size(pods=1000, nodes=1000, per_node=NODE_PODS),
            Size(pods=5000, nodes=5000, per_node=NODE_PODS),
        ),
        make=_cycle,
    ),
    "uniform": Case(
        title="Equal pods",
        why="One class of pods; the nodes are half full.",
        sizes=_GRID,
        make=_uniform,
        quick=2,
    ),
    "diverse": Case(
        title="A mix of six",
        why=(
            "A sixth each: plain, zonal spread, hostname spread, zonal self-affinity, hostname "
            "anti-affinity, many node selectors; applications of 100 equal replicas; nodes are "
            "half full."
        ),
        sizes=_GRID,
        make=_cycle,
        quick=2,
    ),
    "different": Case(
        title="Pods that all differ",
        why=(
            "Each pod asks for another amount of CPU (up to 2) and memory (up to 6 GiB); a fleet "
            "per instance type of the catalogue but the burstable ones, nothing reserved."
        ),
        sizes=(Size(pods=60), Size(pods=200), Size(pods=1000), Size(pods=5000)),
        make=_different,
        quick=3,
    ),
    "even": Case(
        title="One Deployment that spreads over nodes",
        why=(
            "Equal pods with a spread by hostname (maxSkew 1), no nodes, five sizes in three "
            "zones: the spread need not cost a node for each pod. The bound ignores it."
        ),
        sizes=(Size(pods=20), Size(pods=60), Size(pods=1000), Size(pods=5000)),
        make=_even,
        quick=3,
    ),
    "real-shapes": Case(
        title="Real pod shapes on the catalogue's current families",
        why=(
            "Packing sets taken from public clusters; a fleet per instance type at on-demand "
            "prices, nothing reserved: cost against the proven bound."
        ),
        sizes=_real_sizes(),
        make=_real,
        quick=5,
        data=DATA,
    ),
}

"""Fleets, nodes and snapshots for the benchmarks."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from reconciler.config.catalogue import load_catalogue
from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import InstanceOption
from reconciler.model.frozen import FrozenMap
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.benchmarks.pods import MIB
from tests.builders import (
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
GIB = 2**30
KARPENTER_SIZES = 400
KARPENTER_USD_PER_CPU = Decimal("0.31474836")
OUTDATED = frozenset({"m4", "c4", "r4"})


def own_fleet(
    size: str, cpu_milli: int, memory_bytes: int, pods: int, price: Decimal, zone: str | None = None
) -> FleetSettings:
    """A fleet of an own size whose `allocatable` is exact."""
    resources = FrozenMap({"cpu": cpu_milli, "memory": memory_bytes, "pods": pods})
    option = InstanceOption(instance_type=f"{size}.own", resources=resources, usd_per_hour=price)
    return make_fleet_settings(size, zone=zone, options=[option], allocatable=resources)


def karpenter_fleets(sizes: int = KARPENTER_SIZES) -> PlannerSettings:
    """Own sizes of i+1 vCPU, 2(i+1) GiB and 10(i+1) pods, a fleet per size and zone."""
    fleets = [
        own_fleet(
            f"s{i + 1:03}",
            (i + 1) * 1000 - 100,
            2 * (i + 1) * GIB - 10 * MIB,
            10 * (i + 1),
            KARPENTER_USD_PER_CPU * (i + 1),
            zone,
        )
        for i in range(sizes)
        for zone in ZONES
    ]
    return make_settings(*fleets)


def one_fleet(cpu_milli: int, memory_bytes: int, pods: int) -> PlannerSettings:
    """One fleet of one size."""
    return make_settings(own_fleet("only", cpu_milli, memory_bytes, pods, Decimal("0.768")))


def usual_fleets() -> PlannerSettings:
    """Five memory sizes in three zones, at prices that fall a little with size."""
    prices = ("0.0630", "0.1260", "0.2500", "0.4950", "0.9850")
    fleets = [
        own_fleet(f"x{2**n}", 2**n * 2000, 2**n * 16 * GIB, 29 * 2**n, Decimal(price), zone)
        for n, price in enumerate(prices)
        for zone in ZONES
    ]
    return make_settings(*fleets)


def catalogue_fleets(*, burstable: bool = True) -> PlannerSettings:
    """A fleet per instance type of the catalogue's current families, at on-demand prices.

    Args:
        burstable: Whether those of the t families are among them.
    """
    fleets = []
    for name, known in sorted(load_catalogue().items()):
        price = known.on_demand_usd_per_hour
        if name.split(".")[0] in OUTDATED or known.gpus or price is None:
            continue
        if name.startswith("t") and not burstable:
            continue
        fleets.append(
            own_fleet(
                name.replace(".", "-"), known.cpu_milli, known.memory_bytes, known.pods_max, price
            )
        )
    return make_settings(*fleets)


def nodes_of(settings: PlannerSettings, count: int) -> list[Node]:
    """Ready nodes of 8 CPUs, dealt round the fleets of that size."""
    fleets = [f for f in settings.fleets() if f.size == "x4"]
    return [
        make_node(
            f"node-{i:05}", fleets[i % len(fleets)], zone=fleets[i % len(fleets)].zone, ready=True
        )
        for i in range(count)
    ]


def snapshot_of(pods: Iterable[Pod], nodes: Sequence[Node], settings: PlannerSettings) -> Snapshot:
    """A whole snapshot: with nodes, EC2 has answered about their fleets and instances too."""
    if not nodes:
        return make_snapshot(*pods)
    held: dict[str, int] = {}
    for node in nodes:
        name = node.labels["fleet"]
        held[name] = held.get(name, 0) + 1
    live = {f.name: make_fleet(f, held.get(f.name, 0)) for f in settings.fleets()}
    instances = [make_instance(node, live[node.labels["fleet"]]) for node in nodes]
    return make_snapshot(*pods, *nodes, cloud=make_cloud(*live.values(), instances=instances))

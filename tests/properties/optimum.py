"""The true least cost of serving a few pods from a few fleets, by trying everything.

Every set of pods is priced on the cheapest fleet whose node holds it; a dynamic programme over
subsets then finds the cheapest partition. Exact, and hopeless beyond a dozen pods.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import product
from math import ceil
from random import Random  # noqa: TID251 - instances are named by their seed
from typing import Any

from reconciler.model.cluster import Node, Pod
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOSTNAME,
    labelled,
    make_fleet_settings,
    make_node,
    make_pod,
    near,
)

Instance = tuple[tuple[Pod, ...], tuple[FleetSettings, ...]]

Used = tuple[Node, Pod]
"""A node that exists, and the pod that runs on it."""

_PRICES = {1: "0.05", 2: "0.10", 4: "0.19", 8: "0.36", 16: "0.70"}


def random_instance(seed: int) -> Instance:
    """1 to 6 pods for 2 to 4 fleets: sizes, prices, selectors and over-subscription all vary."""
    draw = Random(seed)
    cpus = draw.sample([2, 4, 8, 16], draw.randint(2, 4))
    over = draw.choice([0.0, 0.0, 0.2, 0.3])
    fleets = tuple(
        make_fleet_settings(
            f"cpu{cpu}-{ratio}",
            cpu=cpu,
            memory=f"{cpu * ratio}Gi",
            pods=draw.choice([4, 10, 58]),
            price=str(
                round(
                    float(_PRICES[cpu]) * draw.choice([0.8, 1.0, 1.0, 1.3]) * (0.7 + ratio / 12), 4
                )
            ),
            over_subscription=over,
        )
        for cpu in cpus
        for ratio in [draw.choice([2, 4, 8])]
    )
    pods = []
    for number in range(draw.randint(1, 6)):
        changed: dict[str, Any] = {}
        if draw.random() < 0.15:
            changed["node_selector"] = {"size": draw.choice(fleets).size}
        cpu = draw.choice([250, 500, 1000, 1500, 1900, 3000, 3800, 7000])
        memory = draw.choice([256, 1024, 2048, 4000, 7000, 12000, 30000])
        pods.append(make_pod(f"p{number}", cpu=f"{cpu}m", memory=f"{memory}Mi", **changed))
    return tuple(pods), fleets


def dozen(seed: int) -> Instance:
    """Twelve different pods for three sizes of which larger ones are a little cheaper per CPU."""
    draw = Random(seed)
    fleets = tuple(
        make_fleet_settings(f"c{cpu}", cpu=cpu, memory=f"{4 * cpu}Gi", price=price)
        for cpu, price in ((2, "0.095"), (4, "0.185"), (8, "0.36"))
    )
    sizes = [(draw.randint(300, 4000), draw.randint(500, 14_000)) for _ in range(12)]
    pods = (
        make_pod(f"p{number}", cpu=f"{cpu}m", memory=f"{memory}Mi")
        for number, (cpu, memory) in enumerate(sizes)
    )
    return tuple(pods), fleets


APART = "apart"
"""Pods with this label share a node with no other that has it."""


def random_cluster(seed: int) -> tuple[Instance, tuple[Used, ...]]:
    """An instance, some of whose pods must be apart, and up to two nodes with room for some."""
    pods, fleets = random_instance(seed)
    draw = Random(-seed - 1)
    if draw.random() < 0.5:
        alone = (near(HOSTNAME, app=APART),)
        pods = tuple(
            replace(
                pod,
                labels=labelled(app=APART),
                spec=replace(pod.spec, pod_anti_affinity=alone),
            )
            if draw.random() < 0.6
            else pod
            for pod in pods
        )
    nodes = []
    for number in range(draw.randint(0, 2)):
        fleet = draw.choice(fleets)
        offered = fleet.options[0].resources
        taken = draw.choice([0.02, 0.4, 0.7])
        cpu, memory = int(offered["cpu"] * taken), int(offered["memory"] * taken)
        busy = make_pod(f"b{number}", node=f"n{number}", cpu=f"{cpu}m", memory=str(memory))
        nodes.append((make_node(f"n{number}", fleet), busy))
    return (pods, fleets), tuple(nodes)


def least_cost_beside(
    pods: Sequence[Pod], fleets: Sequence[FleetSettings], nodes: Sequence[Used]
) -> Decimal:
    """The same when some of the pods may go to nodes that exist, in every possible way."""
    if not nodes:
        return least_cost(pods, fleets)
    node, others = nodes[0], nodes[1:]
    costs = []
    for chosen in product((False, True), repeat=len(pods)):
        there = [pod for pod, here in zip(pods, chosen, strict=True) if here]
        if _fits_node(node, there):
            left = [pod for pod, here in zip(pods, chosen, strict=True) if not here]
            costs.append(least_cost_beside(left, fleets, others))
    return min(costs)


def _fits_node(used: Used, pods: Sequence[Pod]) -> bool:
    """Requests count as they are on a node that exists."""
    node, busy = used
    if any(node.labels.get(k) != v for pod in pods for k, v in pod.spec.node_selector.items()):
        return False
    return _may_meet(pods) and all(
        sum(pod.spec.requests.get(name, 0) for pod in [busy, *pods]) <= amount
        for name, amount in node.allocatable.items()
    )


def _may_meet(pods: Sequence[Pod]) -> bool:
    return sum(pod.labels.get("app") == APART for pod in pods) <= 1


def servable(pod: Pod, fleets: Sequence[FleetSettings]) -> bool:
    """Whether any fleet's node takes the pod alone."""
    return any(_holds(fleet, [pod]) for fleet in fleets)


def least_cost(pods: Sequence[Pod], fleets: Sequence[FleetSettings]) -> Decimal:
    """USD per hour; every pod must be servable."""
    everything = (1 << len(pods)) - 1

    @cache
    def price(members: int) -> Decimal | None:
        chosen = [pod for i, pod in enumerate(pods) if members >> i & 1]
        prices = [f.usd_per_hour for f in fleets if f.usd_per_hour and _holds(f, chosen)]
        return min(prices, default=None)

    @cache
    def best(left: int) -> Decimal:
        if not left:
            return Decimal(0)
        first = left & -left
        rest = left ^ first
        costs: list[Decimal] = []
        part = rest
        while True:
            here = price(part | first)
            if here is not None:
                costs.append(here + best(rest ^ part))
            if not part:
                return min(costs)
            part = (part - 1) & rest

    return best(everything)


def _holds(fleet: FleetSettings, pods: Sequence[Pod]) -> bool:
    for pod in pods:
        if any(fleet.labels.get(k) != v for k, v in pod.spec.node_selector.items()):
            return False
    offer = fleet.options[0].resources
    return _may_meet(pods) and all(
        sum(_charge(pod.spec.requests.get(name, 0), name, offer[name], fleet) for pod in pods)
        <= offer[name]
        for name in ("cpu", "memory", "pods")
    )


def _charge(amount: int, name: str, offered: int, fleet: FleetSettings) -> int:
    """Inflated by the over-subscription, but a pod that fits alone still does."""
    if name == "pods":
        return amount
    inflated = ceil(amount * (10_000 + round(fleet.over_subscription * 10_000)) / 10_000)
    return max(amount, min(inflated, offered))

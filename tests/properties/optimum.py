"""The true least cost of serving a few pods from a few fleets, by trying everything.

Every set of pods is priced on the cheapest fleet whose node holds it; a dynamic programme over
subsets then finds the cheapest partition. Exact, and hopeless beyond a dozen pods.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from math import ceil
from random import Random  # noqa: TID251 - instances are named by their seed
from typing import Any

from reconciler.model.cluster import Pod
from reconciler.planner.settings import FleetSettings
from tests.builders import make_fleet_settings, make_pod

Instance = tuple[tuple[Pod, ...], tuple[FleetSettings, ...]]

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
    return all(
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

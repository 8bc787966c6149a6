"""Small purchases stated as numbers, and how to solve them by trying everything."""

from collections.abc import Iterator
from itertools import product
from random import Random  # noqa: TID251 - problems are named by their seed

import numpy as np

from reconciler.planner.capacity.problem.problem import Item, Offer, Problem, state_problem
from reconciler.planner.placement.arrays import UNLIMITED, FloatArray, IntArray
from reconciler.planner.plan_opening import open_builder
from tests.builders import make_fleet_settings, make_pod, make_settings, make_snapshot


def random_problem(seed: int) -> Problem:
    """3 or 4 shapes of pods and 3 sizes of nodes; sometimes a cap that two shapes share."""
    draw = Random(seed)
    fleets = [
        make_fleet_settings(f"s{cpu}", cpu=cpu, memory=f"{cpu * draw.choice([2, 4, 8])}Gi")
        for cpu in draw.sample([2, 3, 4, 6, 8], 3)
    ]
    shapes = [
        make_pod(
            f"p{n}",
            cpu=f"{draw.choice([300, 700, 1100, 1900])}m",
            memory=f"{draw.choice([300, 1500, 3100, 7000])}Mi",
        )
        for n in range(draw.randint(3, 4))
    ]
    builder = open_builder(make_snapshot(*shapes), make_settings(*fleets))
    offers = [
        Offer(
            node=node,
            most=UNLIMITED,
            vector=builder.sim.allocatable_of(node.row),
            over_subscription=0,
            priority=0,
        )
        for node in builder.view.offers.values()
    ]
    capped = draw.random() < 0.4
    items = []
    for number, waiting in enumerate(builder.waiting):
        asked = waiting.pod_class.requests
        columns = list(waiting.pod_class.columns)
        fits = [int((o.vector[columns] // asked[columns]).min()) for o in offers]
        items.append(
            Item(
                pod_class=waiting.pod_class,
                count=draw.randint(1, 5),
                slots=np.array(fits, dtype=np.int64),
                groups=(0,) if capped and number < 2 else (),
            )
        )
    return state_problem(offers, items, (2,) if capped else ())


def patterns_of(problem: Problem, offer: int) -> Iterator[IntArray]:
    """Everything that a node of the offer can hold."""
    most = np.minimum(problem.slots[:, offer], problem.counts)
    for amounts in product(*(range(int(m) + 1) for m in most)):
        held = np.array(amounts, dtype=np.int64)
        fits = (held @ problem.needs[:, offer] <= problem.vectors[offer]).all()
        if fits and (held @ problem.membership <= problem.caps).all():
            yield held


def most_worth(problem: Problem, offer: int, worth: FloatArray) -> float:
    """The most that a node of the offer can hold."""
    return max(float(held @ worth) for held in patterns_of(problem, offer))


def random_worth(problem: Problem, seed: int) -> FloatArray:
    """Something near the price of the resources, a little above or below."""
    draw = Random(seed)
    offer = int(problem.prices.argmax())
    share = (problem.needs[:, offer] / np.maximum(problem.vectors[offer], 1)).max(axis=1)
    spread = np.array([draw.uniform(0.6, 1.3) for _ in problem.items])
    return np.asarray(share * float(problem.prices[offer]) * spread)

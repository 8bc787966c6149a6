"""Many kinds of pods whose rules are about each other, on few fleets with limits."""

from random import Random  # noqa: TID251 - draws are named by their seed
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_settings,
    make_snapshot,
    near,
    spread,
)

KEYS = (HOSTNAME, HOSTNAME, ZONE)
COUNTED = "abcd"
"""Labels that rules select: no pod has the last one."""


def _fleets(draw: Random) -> list[FleetSettings]:
    found = []
    for number in range(draw.randint(1, 4)):
        cpu = draw.choice([2, 4, 8, 16])
        found.append(
            make_fleet_settings(
                f"f{number}",
                cpu=cpu,
                memory=f"{cpu * draw.choice([2, 4, 8])}Gi",
                price=f"{0.05 * cpu * draw.choice([0.7, 1, 1, 3]):.3f}",
                over_subscription=draw.choice([0.0, 0.0, 0.2]),
                max_capacity=draw.choice([None, None, 0, 2, 5]),
                zone=draw.choice(["", "", "us-west-2a", "us-west-2b"]),
            )
        )
    return found


def _pod(draw: Random, number: int) -> Pod:
    rules: dict[str, Any] = {}
    if draw.random() < 0.35:
        terms = (near(draw.choice(KEYS), app=draw.choice(COUNTED)) for _ in range(2))
        rules["pod_anti_affinity"] = tuple(terms)
    if draw.random() < 0.35:
        rules["topology_spread"] = tuple(
            spread(draw.choice(KEYS), draw.randint(1, 3), app=draw.choice(COUNTED))
            for _ in range(2)
        )
    if draw.random() < 0.1:
        rules["pod_affinity"] = (near(draw.choice(KEYS), app=draw.choice(COUNTED)),)
    return make_pod(
        f"p{number}",
        cpu=f"{draw.choice([100, 500, 1900, draw.randint(50, 6000)])}m",
        memory=f"{draw.choice([128, 4000, draw.randint(64, 20_000)])}Mi",
        labels={"app": draw.choice(COUNTED[:-1])},
        priority=draw.choice([0, 0, 0, 100]),
        **rules,
    )


@pytest.mark.parametrize("seed", [*range(40), 42, 75])
def test_pods_whose_rules_are_about_each_other_never_end_the_plan(seed: int) -> None:
    """One tenant's rules would stop the plan for all, or make a fleet larger than it may be."""
    draw = Random(seed)
    fleets = _fleets(draw)
    pods = [_pod(draw, number) for number in range(draw.randint(10, 40))]
    cloud = make_cloud(*(make_fleet(fleet, draw.randint(0, 3)) for fleet in fleets))
    made = plan(make_snapshot(*pods, cloud=cloud), make_settings(*fleets))
    too_large = [
        f.fleet for f in made.fleets if f.max is not None and f.target > max(f.max, f.current)
    ]
    assert too_large == []
    assert len(list(made.placements)) + len(made.unplaceable) == len(pods)

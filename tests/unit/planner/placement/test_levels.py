"""Spreading in levels gives each place what asking about pod after pod would."""

import numpy as np

from reconciler.planner.placement.domains import Ladder


def one_by_one(ladder: Ladder, capacities: list[int], count: int) -> list[int]:
    """The rule as kube-scheduler states it, for one pod at a time."""
    amounts = [0] * len(ladder.levels)
    for _ in range(count):
        levels = [a + b for a, b in zip(ladder.levels, amounts, strict=True)]
        elsewhere = [] if ladder.least_elsewhere is None else [ladder.least_elsewhere]
        least = 0 if ladder.from_zero else min([*levels, *elsewhere])
        allowed = [
            (level, place)
            for place, level in enumerate(levels)
            if amounts[place] < capacities[place] and level + 1 - least <= ladder.max_skew
        ]
        if not allowed:
            break
        amounts[min(allowed)[1]] += 1
    return amounts


def test_levels_give_what_pod_after_pod_gives() -> None:
    """Pods would be bought a zone where topology spread refuses them, or none where it does not."""
    chance = np.random.default_rng(0)
    for _ in range(2000):
        places = int(chance.integers(1, 5))
        ladder = Ladder(
            levels=[int(chance.integers(0, 7)) for _ in range(places)],
            least_elsewhere=(None, 0, 2, 5)[chance.integers(4)],
            max_skew=int(chance.integers(1, 4)),
            from_zero=bool(chance.random() < 0.2),
        )
        capacities = [(0, 1, 3, 100)[chance.integers(4)] for _ in range(places)]
        count = int(chance.integers(0, 41))
        assert ladder.climb(capacities, count) == one_by_one(ladder, capacities, count)

"""Prints the plans of a fixed corpus of random clusters; run by a fresh interpreter.

`python -m tests.properties.corpus COUNT` writes one encoded plan per line.
"""

import sys

from hypothesis import HealthCheck, Phase, given, seed, settings

from reconciler.planner.planner import plan
from reconciler.records.plan import encode_plan
from tests.properties.case import Case
from tests.properties.strategies import cases


def plans(count: int) -> list[bytes]:
    """The plans of the corpus, always the same clusters."""
    found: list[bytes] = []

    @seed(1)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases())
    def collect(case: Case) -> None:
        found.append(encode_plan(plan(case.snapshot, case.settings), kept=True))

    collect()
    return found


if __name__ == "__main__":
    sys.stdout.buffer.writelines(plans(int(sys.argv[1])))

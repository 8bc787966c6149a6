"""The laws of a node's life hold with headroom too, and it is there when all has come to rest."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, note, settings

from reconciler.model.plan import Plan
from tests.full_proofs import rounds
from tests.life.programs import Program, programs
from tests.life.running import Life

PROGRAMS = rounds(15, 500)


@pytest.mark.timeout(rounds(300, 7200))
@settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(program=programs())
def test_headroom_breaks_no_law_and_comes_to_rest(program: Program) -> None:
    """Room that is kept must neither flap nor keep what nobody needs."""
    life = Life(replace(program, config=replace(program.config, headroom=2)))
    made: list[Plan] = []
    life.stage.process.plan_hooks.append(lambda _, each: made.append(each))
    broken = life.run()
    note(f"broken: {broken}")
    assert broken == []
    (found,) = made[-1].headroom
    assert bool(found.missing) == bool(found.because)
    if found.because.startswith("max_hourly_usd"):
        raise AssertionError("no limit of money is set, and one node of the cheapest fleet fits")

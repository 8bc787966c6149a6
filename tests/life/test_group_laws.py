"""No group's desired capacity is lowered except by ending a chosen instance that was drained.

Random programs with groups beside fleets, people who set instances aside and protect them, who
lower and raise desired capacities by hand, faults and crashes. `RECONCILER_FULL_PROOFS=1` plays
2,000.
"""

import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.full_proofs import rounds
from tests.life.group_laws import DesiredCapacities
from tests.life.programs import KINDS_OF_GROUPS, MANY_GROUPS, Config, Program, Step, programs
from tests.life.running import Life

USUAL, FULL = 25, 2000
TOLD_EVERY = 100


def watched(program: Program) -> tuple[Life, DesiredCapacities, list[str]]:
    """Play a program; what it broke comes last."""
    life = Life(program)
    law = DesiredCapacities(life)
    broken = life.run()
    law.check()
    return life, law, [*law.broken, *broken]


@pytest.mark.timeout(7200)
def test_desired_capacity_falls_only_with_a_chosen_drained_instance(
    closing_lines: list[str],
) -> None:
    """Lowered by itself, the group ends an instance of its own choice, running jobs and all."""
    count, tally = rounds(USUAL, FULL), Counter[str]()

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=count == USUAL,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs(kinds=KINDS_OF_GROUPS, groups=MANY_GROUPS))
    def obeys(program: Program) -> None:
        life, law, broken = watched(program)
        tally["programs"] += 1
        tally["cycles"] += life.stage.process.cycles
        tally["crashes"] += life.stage.process.crashes
        tally["lowered"] += law.lowered
        tally["set aside"] += sum(step.kind == "stand-by" for step in program.steps)
        if tally["programs"] % TOLD_EVERY == 0:
            sys.stdout.write(f"{dict(tally)}\n")
            sys.stdout.flush()
        note(f"broken: {broken}")
        assert broken == []

    obeys()
    closing_lines.append(f"laws of groups: {dict(tally)}")
    assert min(tally["crashes"], tally["lowered"], tally["set aside"]) > 0


def test_law_sees_a_desired_capacity_that_is_lowered_by_itself() -> None:
    """A law that nothing breaks proves nothing."""
    life = Life(Program(config=Config(groups=("batch-small",)), steps=()))
    law = DesiredCapacities(life)
    world = life.stage.world
    record = next(
        fleet_record for fleet_record in world.fleets.records.values() if fleet_record.is_group
    )
    world.fleets.set_target(record, 2)
    law.check()
    assert law.broken == []
    world.fleets.set_target(record, 1)
    law.check()
    assert len(law.broken) == 2
    assert "fell by 1" in law.broken[0]
    assert "chose" in law.broken[1]


def test_person_who_lowers_it_breaks_no_law() -> None:
    """Every program with one would be blamed."""
    steps = tuple(Step("target-by-hand", after=5, a=at, b=b) for at in range(8) for b in (2, 0))
    _, law, broken = watched(Program(config=Config(groups=("batch-small",)), steps=steps))
    assert broken == []
    assert law.lowered > 0

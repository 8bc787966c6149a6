"""The laws of a node's life, for random programs (`make laws` runs ten thousand)."""

import os
import sys

import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.life.programs import Config, Program, Step, programs
from tests.life.running import Life

USUAL = 40
PROGRAMS = int(os.environ.get("RECONCILER_LAWS", USUAL))  # noqa: TID251 - how long to search
"""How many programs one run tries; the usual number repeats itself, a larger one searches on."""
TOLD_EVERY = 200
"""Programs between two lines of a long run, so that one which is stopped early says how far it
came."""


class Tally:
    """What the programs of one run did, so that a run of nothing is seen."""

    programs = cycles = crashes = calls = evictions = endings = targets = lowered = 0

    def add(self, life: Life) -> None:
        """Count one program."""
        self.programs += 1
        self.cycles += life.stage.process.cycles
        self.crashes += life.stage.process.crashes
        self.calls += life.stage.world.log.made
        self.evictions += len(life.laws.evictions)
        self.endings += len(life.laws.endings)
        self.targets += len(life.laws.changes)
        self.lowered += life.laws.lowered_by_ends.total()

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.cycles} cycles, {self.calls} calls, "
            f"{self.crashes} crashes; {self.evictions} evictions, {self.targets} targets set, "
            f"{self.endings} instances ended, {self.lowered} with a group's desired capacity"
        )


@pytest.mark.timeout(1200 if PROGRAMS == USUAL else 0)
def test_no_program_breaks_a_law(closing_lines: list[str]) -> None:
    """An operator who leaves the loop alone for a month would find one of these in the morning."""
    tally = Tally()

    @settings(
        max_examples=PROGRAMS,
        deadline=None,
        derandomize=PROGRAMS == USUAL,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs())
    def obeys(program: Program) -> None:
        life = Life(program)
        broken = life.run()
        tally.add(life)
        if tally.programs % TOLD_EVERY == 0:
            sys.stdout.write(f"{tally}\n")
            sys.stdout.flush()
        note(f"broken: {broken}")
        assert broken == []

    obeys()
    closing_lines.append(f"laws: {tally}")
    assert min(tally.crashes, tally.evictions, tally.endings) > 0


def test_node_that_ec2_takes_while_the_program_settles_breaks_no_law() -> None:
    """Its pods wait when it is gone, minutes later, until the instance in its place has joined."""
    steps = tuple(Step(kind, after=0) for kind in ("deployment", "interrupt"))
    life = Life(Program(config=Config(consolidation=True), steps=steps))
    assert life.run() == []
    assert len(life.laws.changes) == 2


def test_nodes_beyond_need_in_the_place_of_one_that_ec2_takes_break_no_law() -> None:
    """Two are launched for the pods of one, as `over_subscription` asks; none of them waits yet."""
    steps = (
        Step("silence", after=0, a=3),
        Step("batch", after=200, a=4),
        Step("deployment", after=20, a=3, b=2),
        Step("deployment", after=200, b=4),
        Step("pinned", after=0, b=2),
        Step("allow-destroy", after=1, a=5, b=2),
        Step("batch", after=200, a=1, b=7),
        Step("interrupt", after=20, a=5, b=6),
    )
    life = Life(Program(config=Config(minimum=1, over_subscription=0.3), steps=steps))
    assert life.run() == []
    assert (1, 3) in [(before, after) for _, _, before, after in life.laws.changes]


def test_idle_node_that_a_set_needs_stays_until_the_set_has_gone() -> None:
    """It was ended, so the set's last node could not be emptied: the new nodes saved nothing."""
    steps = (
        Step("guarded", after=0, a=2),
        Step("end-by-hand", after=0),
        Step("no-capacity", after=200, a=6),
        Step("deployment", after=0, a=6, b=1),
        Step("pinned", after=20, a=5, b=5),
    )
    config = Config(
        minimum=1, consolidation=True, regions=2, groups=("primary-large", "batch-small")
    )
    life = Life(Program(config=config, steps=steps))
    assert life.run() == []
    records = life.stage.world.fleets.records.values()
    assert {record.target for record in records if record.shape.name == "primary-large"} == {0}


def test_pods_of_a_node_whose_mark_is_refused_leave_before_ec2_takes_it() -> None:
    """The queue says so, and the API server refuses the annotation that would say it too."""
    steps = (
        Step("fail", after=0, a=5, b=7),
        Step("cordon", after=200),
        Step("deployment", after=0),
        Step("interrupt", after=200, a=5, b=3),
        Step("scale", after=0),
        Step("crash", after=600, a=6, b=7),
    )
    life = Life(Program(config=Config(threshold=0.5), steps=steps))
    assert life.run() == []
    assert life.laws.evictions

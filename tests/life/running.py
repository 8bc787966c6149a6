"""Runs one program from its first step until everything has come to rest."""

from reconciler.adapters.memory.clock import ManualClock
from tests.life.happenings import Happenings
from tests.life.laws import Laws
from tests.life.programs import Program
from tests.life.settling import settle
from tests.life.stage import Stage

RUNNING_SLEEP_SECONDS = 30.0
AFTER_LAST_STEP_SECONDS = 150.0
"""Until the last spot instance that was given notice is gone, and its node with it."""


class Life:
    """One program, ready to run; `broken` says afterwards which laws it broke."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stage = Stage(program.config)
        self.happenings = Happenings(self.stage)
        self.laws = Laws(self.stage, self.happenings)
        self.broken: list[str] = []

    def run(self) -> list[str]:
        """Everything that should not have been; empty when all laws hold."""
        process, clock = self.stage.process, self.stage.world.clock
        process.sleep_seconds = lambda: RUNNING_SLEEP_SECONDS
        at = 0.0
        for step in self.program.steps:
            at += step.after
            _plan(clock, at, self.happenings, step)
        process.run_for(at + AFTER_LAST_STEP_SECONDS)
        self.happenings.end_all_faults()
        if not self.laws.broken:
            self.broken += settle(self.stage, self.laws)
        self.broken = [*self.laws.broken, *self.broken]
        return self.broken


def _plan(clock: ManualClock, at: float, happenings: Happenings, step: object) -> None:
    clock.call_later(at, lambda: happenings.do(step))  # type: ignore[arg-type] # a Step

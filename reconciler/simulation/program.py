"""What runs on a world: the capacity loop, or a model of another autoscaler."""

from collections.abc import Callable
from typing import Protocol

from reconciler.adapters.memory import MemoryWorld
from reconciler.planner.settings import PlannerSettings
from reconciler.simulation.history import History


class Program(Protocol):
    """Something that watches a world and changes its fleets while virtual time passes."""

    @property
    def now(self) -> float:
        """Virtual seconds since the world began."""
        ...

    @property
    def cycles(self) -> int:
        """How often it has looked at the whole cluster."""
        ...

    def run_until(self, seconds: float) -> None:
        """Let virtual time come so far."""
        ...


ProgramMaker = Callable[[MemoryWorld, PlannerSettings, History], Program]
"""Starts a program on a world whose fleets are there."""

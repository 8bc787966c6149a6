"""A program that runs on a world: the capacity loop, or a model of another autoscaler."""

from collections.abc import Callable
from typing import Protocol

from reconciler.adapters.memory import MemoryWorld
from reconciler.planner.settings import PlannerSettings
from reconciler.simulation.history import History


class Program(Protocol):
    """Watches a world and changes its fleets while virtual time passes."""

    @property
    def now(self) -> float:
        """Return virtual seconds since the world began."""
        ...

    @property
    def cycles(self) -> int:
        """Return how often it has evaluated the whole cluster."""
        ...

    def run_until(self, seconds: float) -> None:
        """Let virtual time pass until then."""
        ...


ProgramMaker = Callable[[MemoryWorld, PlannerSettings, History], Program]
"""Starts a program on a world with these fleets."""

"""Runs a model as a program of a simulation: all that it does is driven by timers of the world."""

from typing import Protocol

from reconciler.simulation.peers.access import Access


class Model(Protocol):
    """Another autoscaler; creating one starts it."""

    passes: int
    """How often it has evaluated the whole cluster."""


class TimedModel:
    """Lets time pass for a model.

    Args:
        access: The world.
        model: The model.
    """

    def __init__(self, access: Access, model: Model) -> None:
        self._access, self._model = access, model

    @property
    def now(self) -> float:
        """See Program."""
        return self._access.now

    @property
    def cycles(self) -> int:
        """See Program."""
        return self._model.passes

    def run_until(self, seconds: float) -> None:
        """See Program."""
        self._access.world.advance(seconds - self.now)

"""A model as a program of a simulation: everything it does hangs on timers of the world."""

from typing import Protocol

from reconciler.simulation.peers.access import Access


class Model(Protocol):
    """Another autoscaler; making one starts it."""

    passes: int
    """How often it has looked at the whole cluster."""


class TimedModel:
    """Lets time pass for a model.

    Args:
        access: The world.
        model: What runs on it.
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

"""How long a search may go on, in steps whose usual cost is known: never a clock.

The same snapshot must give the same plan on any machine, so the time budget is turned into work
by the figures below, measured on a 2.x GHz server core (docs/benchmarks.md).
"""

from dataclasses import dataclass

SECONDS_PER_MASTER = 5e-4
SECONDS_PER_MASTER_CELL = 4e-8
"""Per row and column of a master program, started warm."""
SECONDS_PER_FILL = 1.5e-7
"""Per order, offer and item of greedy filling."""
SECONDS_PER_FILLED_ITEM = 1.5e-4
"""Per item of greedy filling, however many orders and offers."""
SECONDS_PER_KNAPSACK = 1e-2
"""A whole knapsack of one offer."""


@dataclass(slots=True)
class Effort:
    """What is left of a budget."""

    seconds: float

    @property
    def left(self) -> bool:
        """Whether another step may be taken."""
        return self.seconds > 0

    def spend(self, seconds: float) -> None:
        """Take the usual cost of a step off."""
        self.seconds -= seconds

"""How much work a search may do, in steps of known usual cost, never by a clock.

The same snapshot must give the same plan on any machine, so the time budget is turned into work by
the figures below, measured on a 2.x GHz server core (docs/benchmarks.md).
"""

from dataclasses import dataclass

SECONDS_PER_MASTER = 4e-4
SECONDS_PER_MASTER_CELL = 1.2e-8
"""Per row and column of a master program, started warm."""
SECONDS_PER_GREEDY = 6e-8
"""Per order, offer and item of greedy filling."""
SECONDS_PER_GREEDY_ITEM = 5e-5
"""Per item of greedy filling, however many orders and offers."""
SECONDS_PER_RELAXED_PAIR = 1e-6
"""Per item and offer of the knapsacks with divisible pods."""
SECONDS_PER_LEVEL = 1e-4
"""Per level of a knapsack search, however many offers."""
SECONDS_PER_AMOUNT = 2e-7
"""Per amount that a knapsack search tries."""
SECONDS_PER_NEARBY = 3e-4
"""Per search next to known patterns."""
SECONDS_PER_LAID = 5e-8
"""Per pattern less some pods and offer on which it is tried, and again if it is promising."""
SECONDS_PER_FILLING = 2e-7
"""Per filling that is ranked."""
SECONDS_PER_ROUNDING = 1e-3
"""Per step of rounding, without the master."""

SECONDS_PER_REPACKING = 4e-3
"""Per few nodes whose pods are packed again exhaustively."""

SECONDS_PER_SET_LISTED = 1e-8
"""Per partial set of nodes and refutation."""
SECONDS_PER_SET_FILLED = 6e-5
"""Per pod that is placed on a set of nodes by all rules."""


@dataclass(slots=True)
class Effort:
    """What is left of a budget."""

    seconds: float

    @property
    def left(self) -> bool:
        """Return whether another step may be taken."""
        return self.seconds > 0

    def spend(self, seconds: float) -> None:
        """Subtract the usual cost of a step."""
        self.seconds -= seconds

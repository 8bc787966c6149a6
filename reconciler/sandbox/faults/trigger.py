"""Whether a fault occurs this time: its window, its count, its random draw."""

import random  # noqa: TID251 - draws come from a seeded Random, one per fault
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.sandbox.faults.base import When


@dataclass(slots=True, kw_only=True, eq=False)
class Trigger:
    """The state of one fault in force; its owner keeps threads apart."""

    when: When
    since: datetime
    """When it came into force."""
    rng: random.Random = field(repr=False)
    """For its draws."""
    occasions: int = 0
    """How often it could have shown."""
    shown: int = 0
    """How often it did."""

    def is_open(self, now: datetime) -> bool:
        """Return whether `now` lies in its window and its count is not used up."""
        passed = (now - self.since).total_seconds()
        until = self.when.until_seconds
        in_window = passed >= self.when.from_seconds and (until is None or passed < until)
        return in_window and (self.when.count is None or self.shown < self.when.count)

    def fires(self, now: datetime) -> bool:
        """Return whether it shows on this occasion, which is counted."""
        if not self.is_open(now):
            return False
        self.occasions += 1
        if self.occasions <= self.when.after:
            return False
        if self.when.probability < 1 and self.rng.random() >= self.when.probability:
            return False
        self.shown += 1
        return True


def make_trigger(when: When, since: datetime, seed: int, place: str) -> Trigger:
    """Return a trigger whose draws depend only on the seed and the fault's place in the script."""
    rng = random.Random(f"{seed}/{place}")  # noqa: S311 - repeatable on purpose, guards nothing
    return Trigger(when=when, since=since, rng=rng)

"""Random events of a simulation: stated distributions, drawn from a seed.

Each draw has a generator of its own, seeded with the seed and its purpose, so that two configs on
the same demand meet the same events as far as they act alike.
"""

from dataclasses import dataclass
from math import exp
from random import Random  # noqa: TID251 - seeded here


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """The distributions; every report prints them."""

    seed: int = 1
    launch_median_seconds: float = 15.0
    """From the request to a running instance: log-normal."""
    launch_sigma: float = 0.3
    join_median_seconds: float = 35.0
    """From running to a Ready node: log-normal."""
    join_sigma: float = 0.25
    interruptions_per_hour: float = 0.0005
    """Rate for each spot instance, exponential: about one of three in a month."""
    capacity_errors_per_day: float = 0.1
    """Rate for each spot pool (a type in a zone), exponential: EC2 has no capacity there for a
    while."""
    capacity_error_mean_seconds: float = 1200.0
    """How long such a shortage lasts: exponential."""

    def launch_seconds(self, number: int) -> float:
        """Return the time from the request of the n-th instance until it runs."""
        return self._log_normal("launch", number, self.launch_median_seconds, self.launch_sigma)

    def join_seconds(self, number: int) -> float:
        """Return the time from then until it is a Ready node."""
        return self._log_normal("join", number, self.join_median_seconds, self.join_sigma)

    def interruption_seconds(self, name: str) -> float | None:
        """Return the time from a spot instance's launch to its notice; None: never."""
        rate = self.interruptions_per_hour / 3600
        return self._random("interruption", name).expovariate(rate) if rate > 0 else None

    def shortages(self, pool: str, seconds: float) -> list[tuple[float, float]]:
        """Return when a spot pool has no capacity within this time: starts and ends."""
        rate = self.capacity_errors_per_day / 86_400
        found: list[tuple[float, float]] = []
        if rate <= 0 or self.capacity_error_mean_seconds <= 0:
            return found
        draw = self._random("shortage", pool)
        at = draw.expovariate(rate)
        while at < seconds:
            end = at + draw.expovariate(1 / self.capacity_error_mean_seconds)
            found.append((at, end))
            at = end + draw.expovariate(rate)
        return found

    def _log_normal(self, what: str, number: int, median: float, sigma: float) -> float:
        return median * exp(self._random(what, str(number)).gauss(0.0, sigma))

    def _random(self, what: str, name: str) -> Random:
        return Random(f"{self.seed}/{what}/{name}")  # noqa: S311 - no secret

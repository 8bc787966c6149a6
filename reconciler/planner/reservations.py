"""Places that a plan reserves: which pods, on which rows of the what-if cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.model.cluster import Pod
from reconciler.model.ids import FleetKey
from reconciler.planner.placement.classes import PodClass


@dataclass(slots=True, eq=False)
class WaitingClass:
    """A class of demand: its pending pods, and the sectors that serve them."""

    pod_class: PodClass
    sectors: tuple[str, ...]
    pods: list[Pod]
    """In name order; the first `done` have a place."""
    nominated: bool = False
    """Whether any of them has a nominated node."""
    done: int = 0

    @property
    def left(self) -> int:
        """Return how many pods have no place yet."""
        return len(self.pods) - self.done

    def take(self, amount: int) -> list[Pod]:
        """Return the next pods to be placed."""
        taken = self.pods[self.done : self.done + amount]
        self.done += amount
        return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reservation:
    """Pods of a class and the rows that they go to, in order: `amounts[i]` of them to `rows[i]`."""

    waiting: WaitingClass
    pods: Sequence[Pod]
    rows: Sequence[int]
    amounts: Sequence[int]

    def by_row(self) -> Iterator[tuple[int, Sequence[Pod]]]:
        """Yield each of the rows with its pods; a row may occur several times."""
        first = 0
        for row, amount in zip(self.rows, self.amounts, strict=True):
            yield row, self.pods[first : first + amount]
            first += amount


class PlannedNode(NamedTuple):
    """A row without a node: launching capacity, or the n-th new node of a fleet."""

    key: FleetKey
    number: int
    launching: bool

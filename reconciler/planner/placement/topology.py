"""Topology domains of the rows, and counters of pods per domain.

A row's domain for a key is an index: -1 without the label; a certain domain if the value is known;
or an uncertain one, of that row alone, if EC2 chooses among several (`possible`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import numpy as np

from reconciler.model.frozen import Labels
from reconciler.planner.placement.arrays import BoolArray, IntArray, grown
from reconciler.planner.placement.kinds import HOSTNAME, ZONE_KEYS, label_of

_ONE_BY_ONE_MAX = 6
"""Up to this many counters are updated faster one after the other than together."""


class Topology:
    """The domains of one topology key."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.values: list[str] = []
        self.choices: list[tuple[int, ...]] = []
        """Sets of certain domains that an uncertain one may become."""
        self._choice_numbers: dict[tuple[int, ...], int] = {}
        self._choice_of_domain = np.zeros(0, dtype=np.int64)
        self._index: dict[str, int] = {}
        self._domain = np.zeros(0, dtype=np.int64)
        self._rows = 0
        self._counts = np.zeros((0, 0), dtype=np.int64)
        self._totals = np.zeros(0, dtype=np.int64)
        self._counters = 0

    @property
    def domain(self) -> IntArray:
        """Return the domain index of each row."""
        return self._domain[: self._rows]

    def number(self, value: str) -> int:
        """Return the domain with this label value, which is added if it is new."""
        if value not in self._index:
            self._index[value] = len(self.values)
            self.values.append(value)
        return self._index[value]

    def place_of(self, variants: Sequence[Labels]) -> int:
        """Return where a row with these labels is: a domain, -1 without, -2 - n for choice n."""
        if len(variants) == 1:
            value = label_of(variants[0], self.key)
            return self.number(value) if value else -1
        values = sorted({label_of(v, self.key) or "" for v in variants})
        if len(values) == 1:
            return self.number(values[0]) if values[0] else -1
        options = tuple(self.number(value) for value in values if value)
        if options not in self._choice_numbers:
            self._choice_numbers[options] = len(self.choices)
            self.choices.append(options)
        return -2 - self._choice_numbers[options]

    def domains_of(self, nodes: Iterable[Labels]) -> list[int]:
        """Return the domain of each node with these labels; -1 without one."""
        key = self.key
        if key in ZONE_KEYS:
            values = [label_of(node, key) for node in nodes]
        else:
            values = [node.get(key) for node in nodes]
        domains = {value: self.number(value) if value else -1 for value in dict.fromkeys(values)}
        return [domains[value] for value in values]

    def domain_of(self, variants: Sequence[Labels], imagined: str | None) -> int:
        """Return the domain of a row with these label sets.

        `imagined` names a node yet to be made.
        """
        if self.key == HOSTNAME and imagined is not None:
            return self.number(imagined)
        place = self.place_of(variants)
        if place >= -1:
            return place
        self.values.append("")
        self.choice_of_domains()[-1] = -2 - place
        return len(self.values) - 1

    def choice_of_domains(self) -> IntArray:
        """Return for each domain its number in `choices`; -1 for a certain one."""
        count = len(self.values)
        self._choice_of_domain = grown(self._choice_of_domain, count, -1)
        return self._choice_of_domain[:count]

    def add(self, domains: Sequence[int] | IntArray) -> None:
        """Append rows with these domains."""
        total = self._rows + len(domains)
        self._domain = grown(self._domain, total, -1)
        self._domain[self._rows : total] = domains
        self._rows = total

    def truncate(self, rows: int) -> None:
        """Remove the rows from `rows` on."""
        self._rows = rows

    # ---- counters -------------------------------------------------------------------------

    def add_counter(self) -> int:
        """Return the number of a new counter."""
        self._counters += 1
        return self._counters - 1

    @property
    def counts(self) -> IntArray:
        """Return pods per domain, one line per counter, after adding what was counted since."""
        lines, domains = self._counts.shape
        if lines < self._counters or domains < len(self.values):
            before, self._counts = (
                self._counts,
                np.zeros(
                    (_room(lines, self._counters), _room(domains, len(self.values))), dtype=np.int64
                ),
            )
            self._counts[:lines, :domains] = before
        return self._counts

    @property
    def totals(self) -> IntArray:
        """Return the pods in all domains together, by counter."""
        self._totals = grown(self._totals, self._counters)
        return self._totals

    def count(self, counters: IntArray, rows: IntArray, amounts: IntArray) -> None:
        """Count `amounts` more pods (fewer if negative) on these rows in these counters.

        Args:
            counters: Their numbers, each once.
            rows: A row may occur more than once.
            amounts: One per row.
        """
        if len(rows) == 1:
            # The usual case if every pod is of a kind of its own: a tenth of the time.
            domain = int(self._domain[rows[0]])
            if domain >= 0:
                self.counts[counters, domain] += amounts[0]
                self.totals[counters] += amounts[0]
            return
        domains = self._domain[rows]
        if np.count_nonzero(domains < 0):
            held = domains >= 0
            domains, amounts = domains[held], amounts[held]
        counts, totals, total = self.counts, self.totals, int(amounts.sum())
        if len(counters) <= _ONE_BY_ONE_MAX:
            for number in counters.tolist():
                np.add.at(counts[number], domains, amounts)
                totals[number] += total
            return
        distinct, which = np.unique(domains, return_inverse=True)
        added = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(added, which, amounts)
        counts[counters[:, None], distinct] += added
        totals[counters] += total


def _room(there: int, needed: int) -> int:
    """Return how much space to allocate, so that growing stays linear in total."""
    return there if there >= needed else max(needed, 2 * there, 16)


class Counter:
    """Counts the pods of some description in each domain of a topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology: Final = topology
        self.number: Final = topology.add_counter()
        self.daemons: frozenset[int] = frozenset()
        """Numbers of the classes that it counts and that come with new nodes."""

    @property
    def counts(self) -> IntArray:
        """Return pods per domain."""
        return self.topology.counts[self.number, : len(self.topology.values)]

    @property
    def total(self) -> int:
        """Return the pods in all domains together."""
        return int(self.topology.totals[self.number])

    def at_rows(self) -> IntArray:
        """Return for each row the count of its domain; 0 if it has none."""
        domains = self.topology.domain
        if not len(self.topology.values):
            return np.zeros(len(domains), dtype=np.int64)
        counted = self.counts[domains]
        counted[domains < 0] = 0
        return counted

    def over_choices(self, counted: IntArray, pick: Literal["most", "least"]) -> IntArray:
        """Return `counted`, on uncertain rows replaced by the extreme of what they may become.

        The count of the uncertain domain itself, which is that of one row, is kept if it is larger.
        """
        if not self.topology.choices:
            return counted
        counts, domains = self.counts, self.topology.domain
        extreme = [
            counts[list(c)].max() if pick == "most" else counts[list(c)].min()
            for c in self.topology.choices
        ]
        choice = np.where(domains >= 0, self.topology.choice_of_domains()[domains], -1)
        raised: IntArray = np.maximum(counted, np.array([*extreme, 0])[choice])
        return raised


def uncertain_rows(topology: Topology) -> BoolArray:
    """Return the rows whose domain EC2 has yet to choose."""
    domains = topology.domain
    if not topology.choices:
        return np.zeros(len(domains), dtype=np.bool_)
    return np.asarray((domains >= 0) & (topology.choice_of_domains()[domains] >= 0))

"""The rules between pods that a class obeys, each with its counter."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.label_keys import NOWHERE
from reconciler.planner.placement.topology import Counter


@dataclass(slots=True, eq=False)
class SpreadRule:
    """One hard topology spread constraint as one class sees it."""

    counter: Counter
    max_skew: int
    min_domains: int
    counts_itself: bool
    keys: tuple[str, ...]
    """The keys of all hard constraints: a node without one of them is no domain of any."""
    eligible_kinds: Callable[[], BoolArray]
    """Per node kind, whether this constraint counts such nodes."""
    present: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Certain domains with an eligible row, as of `present_version` of the rows."""
    present_version: int = -1


@dataclass(slots=True, eq=False)
class Links:
    """The counters of a class."""

    anti: list[tuple[Counter, bool]] = field(default_factory=list)
    """Its own anti-affinity terms, and whether the class matches the term itself."""
    held_against: list[Counter] = field(default_factory=list)
    """Others' anti-affinity terms that match this class: pods that hold them, per domain."""
    affinity: list[Counter] = field(default_factory=list)
    affinity_itself: bool = False
    """Whether it matches all of its own affinity terms: it may be the first of its group."""
    near_daemons: bool = False
    """Whether a daemon's pod that comes with new nodes matches all of its affinity terms."""
    follows_claim: bool = False
    """Whether its affinity is to the other users of a claim."""
    spread: list[SpreadRule] = field(default_factory=list)

    @property
    def plain(self) -> bool:
        """Return whether no affinity or spread rule applies to the class."""
        return not (self.anti or self.held_against or self.affinity or self.spread)

    @property
    def follows_others(self) -> bool:
        """Return whether the pods must be near pods of other classes."""
        return bool(self.affinity) and not self.affinity_itself

    @property
    def shares_node(self) -> bool:
        """Return whether the pods must share a node with others, of their class or of another."""
        return any(counter.topology.key == HOSTNAME for counter in self.affinity)

    @property
    def fits_nowhere(self) -> bool:
        """Return whether no node, existing or new, takes a pod of the class at the moment.

        A rule asks for a label that no node has and no new one will have, or for a neighbour that
        does not run anywhere. With spread constraints the latter is found row by row, which shows
        the rule that refuses.
        """
        if self.affinity and not self.spread and self.lacks_neighbour:
            return True
        asked = [*self.affinity, *(rule.counter for rule in self.spread)]
        return any(counter.topology.key == NOWHERE for counter in asked)

    @property
    def lacks_neighbour(self) -> bool:
        """Return whether a pod of another class has to run before a pod of this class can.

        Its affinity asks for pods of which none runs or has a place, and its own pods do not match.
        """
        if self.affinity_itself or self.near_daemons:
            return False
        return any(not c.total for c in self.affinity)

    def only(self, key: str) -> "Links":
        """Return the same rules, limited to one topology key."""
        return Links(
            anti=[(c, itself) for c, itself in self.anti if c.topology.key == key],
            held_against=[c for c in self.held_against if c.topology.key == key],
            affinity=[c for c in self.affinity if c.topology.key == key],
            affinity_itself=self.affinity_itself,
            near_daemons=self.near_daemons,
            spread=[r for r in self.spread if r.counter.topology.key == key],
        )

    @property
    def apart(self) -> list[Counter]:
        """Return the counters of its own anti-affinity and of others' against it."""
        return [counter for counter, _ in self.anti] + self.held_against

    def obeyed(self) -> list[Counter]:
        """Return every counter whose value can refuse this class."""
        return self.apart + [rule.counter for rule in self.spread] + self.affinity

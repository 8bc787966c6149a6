"""Which nodes are unneeded at the same time, so that their timers can run together.

Timers influence each other: nodes whose timers have run longest are examined first, and
kube-scheduler fills nodes with the soft taint last. A timer that starts may thus make a second node
needed; that node's timer stops, which makes the first node needed. Timers would start and stop with
every plan, and no node would ever be removed. So a timer is started only if all timers that run
stay valid with it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.model.ids import NodeName
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator

ROUNDS_MAX = 4
"""How many sets of timers are tried; after that no timer is started in this plan."""
_OTHERS_NEEDED = Blocker("in-use", "without it, another node that is to leave would be needed")

Needed = dict[NodeName, Blocker | None]
"""Why each node is needed; None if it is not."""


class UnneededNodes:
    """Finds a set of timers that is valid as long as nothing else changes.

    Args:
        simulator: The what-if cluster in which no candidate has left.
        every: All candidates, in order.
        at: The time of the plan.
        needed: Returns why a candidate is needed, given that the pods of those asked about before
            it have moved; None if it is not needed.
    """

    def __init__(
        self,
        simulator: DrainSimulator,
        every: Sequence[Candidate],
        at: datetime,
        needed: Callable[[Candidate], Blocker | None],
    ) -> None:
        self._simulator = simulator
        self._every = every
        self._at = at
        self._needed = needed

    def among(self, waiting: Sequence[Candidate]) -> Needed:
        """Return for each of these candidates why it is needed; None if its timer may run.

        The simulator is unchanged afterwards.
        """
        timed = frozenset(c.node.name for c in waiting if c.timed)
        blockers = self._with_timers(waiting, timed)
        unneeded = frozenset(name for name, why in blockers.items() if why is None)
        running, starting = timed & unneeded, unneeded - timed
        for _ in range(ROUNDS_MAX):
            if running | starting == timed:
                return blockers
            checked = self._with_timers(waiting, running | starting)
            refused = _needed_among(checked, starting)
            newly_needed = _needed_among(checked, running)
            if not refused and not newly_needed:
                return blockers
            if newly_needed and starting and not refused:
                refused = dict.fromkeys(starting, _OTHERS_NEEDED)
            if not starting:
                running -= newly_needed.keys()
                blockers |= newly_needed
            starting -= refused.keys()
            blockers |= refused
        return blockers | dict.fromkeys(starting, _OTHERS_NEEDED)

    def _with_timers(self, waiting: Sequence[Candidate], timed: Collection[NodeName]) -> Needed:
        """Return the answers as if exactly the nodes `timed` had timers and soft taints."""
        untimed = {c.node.name for c in waiting} - set(timed)
        last = [c.node.name for c in reversed(self._in_order(self._every, timed, untimed))]
        with self._simulator.expecting(last, tainted=timed, untainted=untimed):
            checkpoint = self._simulator.checkpoint()
            asked = self._in_order(waiting, timed, untimed)
            blockers = {c.node.name: self._needed(c) for c in asked}
            self._simulator.undo(checkpoint)
        return blockers

    def _in_order(
        self,
        candidates: Sequence[Candidate],
        timed: Collection[NodeName],
        untimed: Collection[NodeName],
    ) -> list[Candidate]:
        """Return the candidates in the order that they have if exactly `timed` have timers."""
        found = []
        for candidate in candidates:
            since = candidate.since
            if candidate.node.name in timed:
                since = since or self._at
            elif candidate.node.name in untimed:
                since = None
            # Most are unchanged, and copying one takes as long as the rest of this loop.
            found.append(candidate if since == candidate.since else replace(candidate, since=since))
        return sorted(found, key=Candidate.order)


def _needed_among(found: Needed, names: Collection[NodeName]) -> Needed:
    return {name: why for name, why in found.items() if name in names and why is not None}

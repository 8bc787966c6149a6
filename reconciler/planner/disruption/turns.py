"""Which candidates this plan examines, and which wait for a later plan.

Nothing is remembered of earlier plans: whose turn it is follows from the clock.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from reconciler.model.actions import REPLACEMENT_ASKED
from reconciler.model.cluster import Node
from reconciler.planner.disruption.candidates import Candidate, may_go_in_time
from reconciler.planner.disruption.context import DisruptionContext
from reconciler.planner.disruption.drains.attempts import read_attempts
from reconciler.planner.view import ClusterView

T = TypeVar("T")

EXAMINED_MIN = 20
EXAMINED_SHARE = 20
EXAMINED_MAX = 50
"""Nodes whose moves one plan simulates: a twentieth of all, at least 20, or as many as may go at
once, up to 50 (with 100 a plan for 200 nodes took six seconds, and with a twentieth of 2,500 one
took 17). The others keep their timers and have their turn ten seconds later. With 50 instead of 20
the benchmark `disturbance` evicts and costs the same and plans for half as long again."""
EXAMINED_WHILE_BUYING = 10
"""Pods that wait for a launch come first: a plan that buys for them must not take long."""
TRIED_MAX = 20
"""Of so many nodes of a fleet one plan finds out whether a batch could have them."""
TURN_SECONDS = 10
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_COMES_WITHIN = 2
"""Times `instance_init_time`: so long a node that was asked for may take to come and take pods."""


def examined(context: DisruptionContext, candidates: list[Candidate]) -> list[Candidate]:
    """As many candidates as one plan has time for: eligible ones, and of the others some in turn.

    Those in turn are looked at in the first plan of every ten seconds: together, as the answer for
    one depends on the others, and not again in the plans after it. At least half of the places are
    for them: some have no timer yet. Those that may not go whatever the answer come after all
    others: however many a budget keeps, the rest have their turn.
    """
    at_once = max(c.status.settings.scale_in.non_empty_at_once_max for c in candidates)
    share = len(context.view.nodes) // EXAMINED_SHARE
    most = min(max(EXAMINED_MIN, share, at_once), EXAMINED_MAX)
    if context.builder.purchases.pods:
        most = EXAMINED_WHILE_BUYING
    if len(candidates) <= most:
        return candidates
    eligible = [c for c in candidates if c.eligible(context.view.at)]
    others = [c for c in candidates if not c.eligible(context.view.at)]
    places = max(most // 2, most - len(others))
    able = _eligible_in_turn(context, eligible, places, most)
    first = able[:places]
    if not begins_a_turn(context.view):
        return first
    in_turn = _able(context, _turned(context.view, others))
    able = [*first, *islice(in_turn, most - len(first)), *able[len(first) :]][:most]
    chosen = {c.node.name for c in able}
    blocked = (c for c in candidates if c.node.name not in chosen)
    return [*able, *islice(blocked, most - len(able))]


def _eligible_in_turn(
    context: DisruptionContext, eligible: Sequence[Candidate], places: int, most: int
) -> list[Candidate]:
    """Up to `most` of the eligible that may go; where they are more, half of `places` in turn.

    Nodes that are to be replaced and whose pods fit nowhere are the first in every plan, for good:
    without turns they would keep all after them from being looked at. A node in whose place another
    was asked for comes before all: that one would stand idle, and more be asked for meanwhile.
    """
    ordered = sorted(eligible, key=lambda c: not _waits_for_new(context.view, c.node))
    able = list(islice(_able(context, ordered), most + 1))
    if len(able) <= places:
        return able
    in_order = able[: (places + 1) // 2]
    later = ordered[ordered.index(in_order[-1]) + 1 :]
    in_turn = islice(_able(context, _turned(context.view, later)), places - len(in_order))
    chosen = [*in_order, *in_turn]
    return [*chosen, *(c for c in able if c not in chosen)][:most]


def _waits_for_new(view: ClusterView, node: Node) -> bool:
    """Return whether a node was asked for in its place, and may still come or has just come."""
    lasts = timedelta(seconds=_COMES_WITHIN * view.settings.instance_init_seconds)
    return read_attempts(node.annotations.get(REPLACEMENT_ASKED, ""), view.at, lasts) is not None


def _able(context: DisruptionContext, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    return (c for c in candidates if may_go_in_time(context, c))


def begins_a_turn(view: ClusterView) -> bool:
    """Return whether the plan before this one was made in an earlier turn, or is not known."""
    previous_at = view.snapshot.previous_at
    return previous_at is None or _turn_of(previous_at) != _turn_of(view.at)


def in_turn(view: ClusterView, ordered: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes in order; of more than a plan tries, the later ones take turns."""
    if len(ordered) <= TRIED_MAX:
        return ordered
    first, others = ordered[: TRIED_MAX // 2], ordered[TRIED_MAX // 2 :]
    return [*first, *_turned(view, others)]


def _turned(view: ClusterView, ordered: Sequence[T]) -> Sequence[T]:
    """Return the sequence rotated, so that it begins with the one whose turn it is.

    By multiples of the golden ratio the turns begin evenly all over them, however far apart plans
    are: if each began where the one before ended, plans at the time that a round takes would always
    look at the same nodes.
    """
    turn = int(_turn_of(view.at) * _GOLDEN_RATIO % 1 * len(ordered))
    return [*ordered[turn:], *ordered[:turn]]


def _turn_of(at: datetime) -> int:
    return int(at.timestamp() // TURN_SECONDS)

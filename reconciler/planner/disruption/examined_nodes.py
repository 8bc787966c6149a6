"""Which candidates this plan examines, and which wait for a later plan.

No state is kept between plans: whose turn it is follows from the clock.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from reconciler.model.actions import REPLACEMENT_ASKED
from reconciler.model.cluster import Node
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import may_go_in_time
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.attempts import read_attempts
from reconciler.planner.view import ClusterView

T = TypeVar("T")

EXAMINED_MIN = 20
EXAMINED_SHARE = 20
EXAMINED_MAX = 50
"""How many nodes one plan simulates the drain of: a twentieth of all (EXAMINED_SHARE), at least 20,
at least as many as may go at once, and at most 50. The others keep their timers and have their
turn ten seconds later. Measured: with 100 a plan for 200 nodes took 6 s, and with a twentieth of
2,500 nodes one took 17 s. With 50 instead of 20 the benchmark `disturbance` has the same
evictions and cost, and takes half as long again to plan."""
EXAMINED_WHILE_BUYING = 10
"""The limit while pods wait for nodes: a plan that buys for them must not take long."""
TRIED_MAX = 20
"""For how many nodes of a fleet one plan tries whether they can join a batch."""
TURN_SECONDS = 10
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_REPLACEMENT_COMES_WITHIN = 2
"""In multiples of `instance_init_time`: how long a replacement may take to join and take pods."""


def examined(context: DisruptionContext, candidates: list[Candidate]) -> list[Candidate]:
    """Return as many candidates as one plan has time for.

    Those are eligible ones and, in the first plan of every ten seconds, others in turn. The others
    are examined together because the answer for one depends on the rest. At least half of the
    places are for them, as some have no timer yet. Candidates that a limit keeps in any case come
    last, so that they do not use up the places of the rest.
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
    allowed = _eligible_in_turn(context, eligible, places, most)
    first = allowed[:places]
    if not begins_a_turn(context.view):
        return first
    rotated = _able_in_time(context, _rotated(context.view, others))
    allowed = [*first, *islice(rotated, most - len(first)), *allowed[len(first) :]][:most]
    chosen = {c.node.name for c in allowed}
    blocked = (c for c in candidates if c.node.name not in chosen)
    return [*allowed, *islice(blocked, most - len(allowed))]


def _eligible_in_turn(
    context: DisruptionContext, eligible: Sequence[Candidate], places: int, most: int
) -> list[Candidate]:
    """Return up to `most` eligible candidates that may go, half of `places` in turn if too many.

    Nodes that are to be replaced and whose pods fit nowhere are first in every plan: without turns
    the nodes after them would never be examined. A node whose replacement was asked for comes
    before all: the replacement would stand idle, and more would be bought meanwhile.
    """
    ordered = sorted(eligible, key=lambda c: not _waits_for_new(context.view, c.node))
    allowed = list(islice(_able_in_time(context, ordered), most + 1))
    if len(allowed) <= places:
        return allowed
    in_order = allowed[: (places + 1) // 2]
    later = ordered[ordered.index(in_order[-1]) + 1 :]
    rotated = islice(_able_in_time(context, _rotated(context.view, later)), places - len(in_order))
    chosen = [*in_order, *rotated]
    return [*chosen, *(c for c in allowed if c not in chosen)][:most]


def _waits_for_new(view: ClusterView, node: Node) -> bool:
    """Return whether its replacement was asked for, and may still come or has just come."""
    lasts = timedelta(seconds=_REPLACEMENT_COMES_WITHIN * view.settings.instance_init_seconds)
    return read_attempts(node.annotations.get(REPLACEMENT_ASKED, ""), view.at, lasts) is not None


def _able_in_time(
    context: DisruptionContext, candidates: Sequence[Candidate]
) -> Iterator[Candidate]:
    return (c for c in candidates if may_go_in_time(context, c))


def begins_a_turn(view: ClusterView) -> bool:
    """Return whether this is the first plan of a turn; also if the last plan's time is unknown."""
    previous_at = view.snapshot.previous_at
    return previous_at is None or _turn_of(previous_at) != _turn_of(view.at)


def nodes_to_try(view: ClusterView, ordered: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes to try: the first of them, and of a longer list the later ones in turn."""
    if len(ordered) <= TRIED_MAX:
        return ordered
    first, others = ordered[: TRIED_MAX // 2], ordered[TRIED_MAX // 2 :]
    return [*first, *_rotated(view, others)]


def _rotated(view: ClusterView, ordered: Sequence[T]) -> Sequence[T]:
    """Return the sequence rotated, so that it begins with the one whose turn it is.

    The start of each turn is a multiple of the golden ratio, so that the starts spread evenly
    however far apart plans are. If each turn began where the one before ended, plans whose interval
    equals a whole round would always examine the same nodes.
    """
    turn = int(_turn_of(view.at) * _GOLDEN_RATIO % 1 * len(ordered))
    return [*ordered[turn:], *ordered[:turn]]


def _turn_of(at: datetime) -> int:
    return int(at.timestamp() // TURN_SECONDS)

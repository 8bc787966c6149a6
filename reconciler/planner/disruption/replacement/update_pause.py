"""Decides when a rolling update pauses because its last new nodes stayed unused.

A webhook that refuses evictions, or a taint that the config does not know, shows only once a new
node is paid for. Without a rest such a node would be bought for each old one in turn.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Node
from reconciler.model.text import counted_noun, rfc3339
from reconciler.planner.disruption.drains.actions import last_failure
from reconciler.planner.disruption.drains.attempts import Attempts
from reconciler.planner.disruption.replacement.consolidator import (
    ASKED_FORGOTTEN_AFTER,
    ASKED_MAX,
    asked_for,
)
from reconciler.planner.fleets.updates.update import Update
from reconciler.planner.view import ClusterView

UNUSED_MAX: Final = 2
"""After so many new nodes in a row of which none was used the update rests."""
REST: Final = timedelta(hours=1)
"""How long it rests then; it doubles with each further one."""
REST_MAX: Final = timedelta(days=1)
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Why and until when no batch of an update begins."""

    until: datetime
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _NotEmptied:
    """An old node that could not be emptied, though new nodes came for it."""

    node: Node
    asked: Attempts
    """The new nodes that were asked for."""
    failed: Attempts
    """The drains that failed."""


def nodes_not_emptied(view: ClusterView, update: Update) -> list[_NotEmptied]:
    """Return the old nodes that could not be emptied, though new ones came for them.

    Only purchases since the last new node that pods use count: with that one the update has made
    progress.
    """
    used = max(
        (n.created_at for n in update.new if n.created_at and n.name in view.nodes_in_use),
        default=None,
    )
    found: list[_NotEmptied] = []
    for name in sorted(update.old.keys() - update.batch.keys()):
        node = view.nodes[name]
        asked = asked_for(view, node, update.version)
        if asked is None or (used is not None and used > asked.latest):
            continue
        failed = last_failure(view, node, since=asked.latest)
        if failed is not None and failed.latest >= asked.latest:
            found.append(_NotEmptied(node=node, asked=asked, failed=failed))
    return found


def rest_of(view: ClusterView, update: Update, *, none_chosen: bool = False) -> Rest | None:
    """Return the rest of an update of which no batch is under way; None if it does not rest.

    Args:
        view: The facts.
        update: The update.
        none_chosen: Whether none of its other nodes can be replaced now either: then it rests until
            a new node may be asked for again for one of these (`ASKED_MAX`).
    """
    found = nodes_not_emptied(view, update)
    count = sum(each.asked.count for each in found)
    if count < UNUSED_MAX:
        return None
    longer = 1 << min(count - UNUSED_MAX, 8)
    until = max(each.failed.latest for each in found) + min(REST * longer, REST_MAX)
    if none_chosen or len(found) == len(update.old):
        until = max(until, min(_asked_again_at(each.asked) for each in found))
    if until <= view.at:
        return None
    names = [each.node.name for each in found]
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return Rest(
        until=until,
        because=f"it rests until {rfc3339(until)}: {counted_noun(count, 'new node')} in a row were "
        f"not used, as {', '.join(names[:_NAMED_MAX])}{more} could not be emptied",
    )


def _asked_again_at(asked: Attempts) -> datetime:
    """Return when a new node may be asked for again for the same node."""
    enough = asked.count >= ASKED_MAX
    return asked.latest + ASKED_FORGOTTEN_AFTER if enough else asked.latest

"""The annotation of a node in a batch of a rolling update."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reconciler.model.actions import ROLLING_UPDATE
from reconciler.model.cluster import Node
from reconciler.model.text import parse_rfc3339, rfc3339

_DIGITS_MAX: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnnotation:
    """The batch of a node, written as `<version>/<RFC 3339>/<number>`.

    `/<RFC 3339>` is appended once it has waited for its turn.
    """

    version: str
    """The launch template version of its replacement."""
    at: datetime
    """When the batch began."""
    number: int
    """From 1; the node is drained once this many new nodes take pods."""
    waited_until: datetime | None = None
    """Until when it only waited for its turn, as last noted; None if never noted."""

    def __str__(self) -> str:
        waited = "" if self.waited_until is None else f"/{rfc3339(self.waited_until)}"
        return f"{self.version}/{rfc3339(self.at)}/{self.number}{waited}"


def read_batch(node: Node, at: datetime) -> BatchAnnotation | None:
    """Return the batch that the node's annotation names; None if it has none or it is unreadable.

    A future time counts as now.
    """
    version, *rest = node.annotations.get(ROLLING_UPDATE, "").split("/")
    match rest:
        case [noted, number]:
            times = [parse_rfc3339(noted)]
        case [noted, number, waited]:
            times = [parse_rfc3339(noted), parse_rfc3339(waited)]
        case _:
            return None
    known = [min(time, at) for time in times if time is not None]
    readable = number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
    if len(known) < len(times) or not readable or int(number) < 1:
        return None
    return BatchAnnotation(
        version=version,
        at=known[0],
        number=int(number),
        waited_until=known[1] if known[1:] else None,
    )

"""Caches the fleets that the list of a region leaves out, though instances with our tags name them.

They may be of another type than `maintain`, or not carry our tags. EC2 shows each by its id, and
refuses the answer about all when it does not know one of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.adapters.aws.paging import chunks
from reconciler.model.errors import NotFound, Refused, Throttled, Unavailable
from reconciler.model.ids import Region

KEPT_SECONDS = 60.0
"""How long an answer is used, also the answer that a fleet does not exist."""
AT_ONCE = 20
"""Fleets of one call."""

Fleet = Mapping[str, Any]
Ask = Callable[[Sequence[str]], Sequence[Fleet]]


@dataclass(frozen=True, slots=True)
class _Answer:
    at: float
    fleet: Fleet | None
    """None: it does not exist in EC2."""


class UnlistedFleets:
    """Keeps EC2's answers about fleets by their ids, per region.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[Region, Mapping[str, _Answer]] = {}

    def read(self, region: Region, ids: Iterable[str], ask: Ask) -> list[Fleet]:
        """Return those of the fleets that exist in EC2.

        While EC2 does not answer, older answers are used.

        Args:
            region: The region.
            ids: The fleets.
            ask: Reads fleets by their ids; raises PortErrors.

        Raises:
            PortError: EC2 does not answer, and there is no older answer about one of them.
        """
        wanted, now = sorted(ids), self._monotonic()
        known = {each: self._known.get(region, {}).get(each) for each in wanted}
        old = [each for each, answer in known.items() if _is_old(answer, now)]
        try:
            for chunk in chunks(old, AT_ONCE):
                found = {fleet["FleetId"]: fleet for fleet in _asked(chunk, ask)}
                known.update({each: _Answer(now, found.get(each)) for each in chunk})
        except (Throttled, Unavailable):
            if any(answer is None for answer in known.values()):
                raise
        answers = {each: answer for each, answer in known.items() if answer is not None}
        self._known[region] = answers
        return [answer.fleet for answer in answers.values() if answer.fleet is not None]


def _is_old(answer: _Answer | None, now: float) -> bool:
    return answer is None or now - answer.at > KEPT_SECONDS


def _asked(ids: Sequence[str], ask: Ask) -> list[Fleet]:
    """Return those of the fleets that exist: in one call, or one by one if EC2 refuses it."""
    try:
        return list(ask(ids))
    except (NotFound, Refused):
        if len(ids) == 1:
            return []
    return [fleet for each in ids for fleet in _asked([each], ask)]

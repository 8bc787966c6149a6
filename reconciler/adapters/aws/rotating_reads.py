"""Reads what AWS answers per object and call: for a few of many objects in each observation."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from reconciler.adapters.aws.paging import chunks
from reconciler.model.errors import Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.records.aws import Answer

AGAIN_MAX: Final = 10
"""How many objects are read in an observation at most, apart from those never read before."""
PARALLEL: Final = 8
"""Calls in flight; an HTTP client of boto3 has ten connections."""

Ask = Callable[[str], list[Answer]]


class RotatingReads:
    """Keeps AWS's answers about objects for which each call answers for one only, per region.

    Objects that the last observation did not have are all read. Of the others those with the
    oldest answers are read, within the limit; for the rest the last answer is used.
    """

    def __init__(self) -> None:
        self._known: dict[Region, Mapping[str, list[Answer]]] = {}
        """The answers in the order in which they were read."""
        self._unanswered: dict[Region, frozenset[str]] = {}

    def known(self, region: Region) -> Mapping[str, list[Answer]]:
        """Return the last answers about the objects of the last observation."""
        return self._known.get(region, {})

    def unanswered(self, region: Region) -> frozenset[str]:
        """Return the objects of the last observation that have no answer: AWS gave none."""
        return self._unanswered.get(region, frozenset())

    def read(self, region: Region, names: Iterable[str], ask: Ask) -> Mapping[str, list[Answer]]:
        """Return the answers about these objects, without those for which AWS has none.

        After the first call that AWS does not answer, or throttles, no more are made: each would
        take as long.

        Args:
            region: The region.
            names: The objects.
            ask: Reads one of them; called from several threads. It raises Unavailable or Throttled
                where nothing is known now.
        """
        wanted = dict.fromkeys(names)
        before = self._known.get(region, {})
        known = {name: answers for name, answers in before.items() if name in wanted}
        new = [name for name in wanted if name not in known]
        again = [*known][: max(0, AGAIN_MAX - len(new))]
        for some in chunks([*new, *again], PARALLEL):
            found = _answers(some, ask)
            for name in some:
                known.pop(name, None)
            known.update({name: answers for name, answers in found.items() if answers is not None})
            if None in found.values():
                break
        self._known[region] = known
        self._unanswered[region] = frozenset(wanted.keys() - known.keys())
        return known


def _answers(names: list[str], ask: Ask) -> dict[str, list[Answer] | None]:
    """Return the answers to questions that are asked at once; None without one."""
    with ThreadPoolExecutor(len(names), thread_name_prefix="aws-in-turn") as pool:
        return dict(zip(names, pool.map(partial(_answer, ask), names), strict=True))


def _answer(ask: Ask, name: str) -> list[Answer] | None:
    try:
        return ask(name)
    except (Unavailable, Throttled):
        return None

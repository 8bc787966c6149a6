"""How independent pieces of work are carried out: one after the other, or several at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
Work = Callable[[], Result]
Runner = Callable[[Sequence[Work[Result]]], Iterator[Result]]
"""Yields the results in the order of the work, whatever ends first."""

PARALLEL_MAX = 32
"""Calls under way at once; the API server has room for hundreds, and others use it too."""


def in_turn(work: Sequence[Work[Result]]) -> Iterator[Result]:
    """One after the other, in the caller's thread, so that the order never varies."""
    for each in work:
        yield each()


def in_parallel(work: Sequence[Work[Result]]) -> Iterator[Result]:
    """Up to PARALLEL_MAX at once; an exception ends what has not begun."""
    if len(work) <= 1:
        yield from in_turn(work)
        return
    pool = ThreadPoolExecutor(min(PARALLEL_MAX, len(work)), thread_name_prefix="act")
    try:
        for future in [pool.submit(each) for each in work]:
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

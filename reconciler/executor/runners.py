"""Runs independent pieces of work: one after the other, or several at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
Work = Callable[[], Result]
Runner = Callable[[Sequence[Work[Result]]], Iterator[Result]]
"""Yields the results in the order of the work, whichever ends first."""

PARALLEL_MAX = 32
"""Calls at the same time; the API server has room for hundreds, and serves other clients too."""


def one_by_one(work: Sequence[Work[Result]]) -> Iterator[Result]:
    """Run one after the other, in the caller's thread, so that the order never varies."""
    for each in work:
        yield each()


def in_parallel(work: Sequence[Work[Result]]) -> Iterator[Result]:
    """Run up to PARALLEL_MAX at once; an exception cancels what has not begun."""
    if len(work) <= 1:
        yield from one_by_one(work)
        return
    pool = ThreadPoolExecutor(min(PARALLEL_MAX, len(work)), thread_name_prefix="act")
    try:
        for future in [pool.submit(each) for each in work]:
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

"""A time limit for a server that keeps a connection busy and never finishes its answer."""

import threading
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


def within(seconds: float, call: Callable[[], ResultT]) -> ResultT:
    """Return or raise what a call does, if it ends in time.

    Socket timeouts apply to each received piece, so a server that sends a byte now and then never
    exceeds them. A call that is given up stays in its own thread until it ends by itself or with
    the process.

    Raises:
        TimeoutError: It did not end in time.
    """
    returned: list[ResultT] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="within-deadline", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise TimeoutError(f"no whole answer within {seconds:g} s")
    return returned[0]

"""An end to waiting for a server that keeps a connection busy without ever finishing its answer."""

import threading
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


def within(seconds: float, call: Callable[[], ResultT]) -> ResultT:
    """What a call returns or raises, if it ends in time.

    Timeouts of sockets are for each piece that arrives: a server that sends a byte now and then
    meets them for ever. The call that is given up stays in a thread of its own until it ends by
    itself, or the process does.

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

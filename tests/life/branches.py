"""Plays a story to several ends, each in a copy of this process made at the point where it parts.

The state at that point need not be built again and played up to it, and nothing that a copy does
can reach this process.
"""

import gc
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


def _fork() -> int:
    """Make a copy of this process; a copy uses none of the threads that it does not get."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        return os.fork()


class Branches(Generic[Result]):
    """A story, and copies of the process that play it on from points of it."""

    def __init__(self) -> None:
        self._pipe: int | None = None

    @property
    def is_copy(self) -> bool:
        """Whether this process is a copy."""
        return self._pipe is not None

    def play(self, story: Callable[[], Result]) -> Result:
        """Return what the story returns; a copy sends it, or what was raised, and ends."""
        sent: tuple[Result | None, str]
        try:
            result = story()
        except BaseException:
            if not self.is_copy:
                raise
            sent = (None, traceback.format_exc())
        else:
            if not self.is_copy:
                return result
            sent = (result, "")
        assert self._pipe is not None
        try:
            with os.fdopen(self._pipe, "wb") as pipe:
                pipe.write(pickle.dumps(sent))
        finally:
            os._exit(0)  # whatever happened: the copy must not go on as a second test run

    def branch(self) -> Result | None:
        """Return the result of a copy that plays on from here, or None in the copy.

        Call it in the story that `play` plays. The copy ends before this process goes on.

        Raises:
            AssertionError: The story raised an error in the copy, or the copy sent nothing.
        """
        assert not self.is_copy, "a copy makes no copies"
        reading, writing = os.pipe()
        child = _fork()
        if child == 0:
            gc.freeze()  # a collection would touch, and so copy, all memory
            os.close(reading)
            self._pipe = writing
            return None
        os.close(writing)
        try:
            with os.fdopen(reading, "rb") as pipe:
                sent = pipe.read()
        except BaseException:
            os.kill(child, signal.SIGKILL)  # the test's time is over, or somebody stops the run
            raise
        finally:
            _, status = os.waitpid(child, 0)
        assert sent, f"the copy sent nothing and ended with {os.waitstatus_to_exitcode(status)}"
        result: Result
        result, error = pickle.loads(sent)  # noqa: S301 - from a process that this one made
        assert not error, error
        return result

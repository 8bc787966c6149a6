"""Reads several regions at once, so that a slow one never delays the others."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Generic, TypeVar

from reconciler.model.errors import PortError, Unavailable, name_and_text
from reconciler.model.fleet import Provider
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState, Ignored
from reconciler.records.aws import Answer

T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long to wait for a region once another one has answered."""
RAW_PATIENCE_SECONDS = 600.0
"""A snapshot needs every region, so slow ones are waited for."""


class _Reading(Generic[T]):
    """One read of one region, in a thread that does not keep the process alive."""

    def __init__(
        self, region: Region, read: Callable[[Region], T], ended: threading.Condition
    ) -> None:
        self.region = region
        self.result: T | PortError | None = None
        self.bug: BaseException | None = None
        self._read = read
        self._ended = ended
        self.running = True
        threading.Thread(target=self._run, name=f"ec2-{region}", daemon=True).start()

    def _run(self) -> None:
        try:
            self.result = self._read(self.region)
        except PortError as error:
            self.result = error
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            self.bug = error
        with self._ended:
            self.running = False
            self._ended.notify_all()


class RegionReaders(Generic[T]):
    """Reads regions in parallel, and leaves out those that take too long.

    A region whose last read is still in progress is not read again: that read may finish, and its
    answer is discarded as too old.

    Args:
        read: Reads one region; runs in its own thread, may raise PortErrors.
        patience_seconds: How long to wait for a region once another one has answered.
    """

    def __init__(
        self, read: Callable[[Region], T], patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._read = read
        self._patience_seconds = patience_seconds
        self._ended = threading.Condition()
        self._late: dict[Region, _Reading[T]] = {}

    def read(self, regions: Sequence[Region]) -> list[tuple[Region, T | PortError]]:
        """Return each region's answer, or its error, in the order of the argument."""
        wanted = list(dict.fromkeys(regions))
        with self._ended:
            self._late = {r: each for r, each in self._late.items() if each.running}
        readings = {
            region: _Reading(region, self._read, self._ended)
            for region in wanted
            if region not in self._late
        }
        self._wait(readings)
        return [(region, self._outcome(region, readings.get(region))) for region in wanted]

    def _wait(self, readings: dict[Region, _Reading[T]]) -> None:
        """Wait until all have ended, or one has answered and the time for the others is over."""
        deadline: float | None = None
        with self._ended:
            while any(reading.running for reading in readings.values()):
                if deadline is None and any(
                    _has_answered(reading) for reading in readings.values()
                ):
                    deadline = time.monotonic() + self._patience_seconds
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return
                self._ended.wait(left)

    def _outcome(self, region: Region, reading: _Reading[T] | None) -> T | PortError:
        if reading is None:
            return Unavailable(region, "still does not answer")
        if reading.running:
            self._late[region] = reading
            return Unavailable(region, f"did not answer within {self._patience_seconds:g} s")
        if reading.bug is not None:
            raise reading.bug
        result = reading.result
        return Unavailable(region, "gave no answer") if result is None else result


def observed(
    readers: RegionReaders[list[Answer]],
    regions: Sequence[Region],
    decode: Callable[[Sequence[tuple[Region, Answer]]], CloudState],
    server_time: Callable[[], datetime | None],
    provider: Provider,
) -> CloudState:
    """Read all regions at once; those that do not answer are left out and reported.

    Args:
        readers: Reads the regions.
        regions: The regions.
        decode: Turns the answers into a state.
        server_time: Returns the time of AWS's clock.
        provider: Whose fleets the answers show.

    Raises:
        PortError: No region answered; the first one's error.
    """
    answers: list[tuple[Region, Answer]] = []
    failed: list[tuple[Region, PortError]] = []
    for region, result in readers.read(regions):
        if isinstance(result, PortError):
            failed.append((region, result))
        else:
            answers.extend((region, answer) for answer in result)
    if failed and not answers:
        raise failed[0][1]
    state = decode(answers)
    silent = frozenset(region for region, _ in failed)
    unreadable = (
        Ignored(code="unreadable", kind="Region", name=region, detail=name_and_text(error))
        for region, error in failed
    )
    return replace(
        state,
        silent=silent,
        providers=frozenset({provider}),
        ignored=tuple(sorted((*state.ignored, *unreadable))),
        server_time=server_time(),
    )


def raw_answers(
    read: Callable[[Region], list[Answer]], regions: Sequence[Region]
) -> dict[Region, list[Answer]]:
    """Return the answers of every region; a region's error is raised, slow ones are waited for."""
    found: dict[Region, list[Answer]] = {}
    for region, result in RegionReaders(read, RAW_PATIENCE_SECONDS).read(regions):
        if isinstance(result, PortError):
            raise result
        found[region] = result
    return found


def _has_answered(reading: _Reading[T]) -> bool:
    return not reading.running and not isinstance(reading.result, PortError)

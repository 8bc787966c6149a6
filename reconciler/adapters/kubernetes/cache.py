"""A cache of one kind of object; its changes notify a signal."""

import threading
import time
from collections.abc import Callable

from reconciler.adapters.kubernetes.changes import asks, is_new_demand, matters
from reconciler.adapters.kubernetes.comparison import CachedObject, Comparison, Key
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.model.cluster import Pod
from reconciler.records.kubernetes import ClusterObject, Decoded

SHRUNK_TO = 0.7
"""A list with less than this share of the known objects is confirmed by another one."""


UNREACHED_MAX = 3
"""After this many attempts that were refused for a lasting reason, or had no connection, the wait
for the first list ends with the reason."""


class Cache:
    """The objects of one kind. One thread watches and writes, any thread reads.

    Another thread may settle it with a list that was read during the watch.

    Args:
        kind: Its name.
        signal: Notified of changes that matter to planning.
        monotonic: A clock that never jumps.
        touched: Called at any change, by whichever thread writes.
    """

    def __init__(
        self,
        kind: str,
        signal: ThreadedChangeSignal,
        monotonic: Callable[[], float] = time.monotonic,
        touched: Callable[[], None] = lambda: None,
    ) -> None:
        self.kind = kind
        self._touched = touched
        self._signal = signal
        self._source = f"kubernetes/{kind}"
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._held: dict[Key, CachedObject] = {}
        self._answered_at: float | None = None
        self._comparison: Comparison | None = None
        self._lists_agreeing = 0
        self._came_back = False
        self._trouble = ""
        self._unreached = 0
        self._listed = threading.Event()
        self._waits_ended = False

    def cut_off(self) -> None:
        """Note that the server cut off a watch during changes; it is resumed at once."""
        self._signal.expect_more()

    def note_answer(self) -> None:
        """Note that the server answered, even if nothing changed."""
        self._answered_at = self._monotonic()
        self._trouble = ""
        if self._unreached:
            self._unreached = 0
            with self._lock:
                if not self.synced and not self._waits_ended:
                    self._listed.clear()

    def failed(self, why: str, *, lasting: bool = False) -> None:
        """Keep the reason of a failure, for the error that follows if it persists.

        Args:
            why: For people.
            lasting: There is no connection at all, or no right: a wait for the first list soon ends
                with the reason.
        """
        self._trouble = why
        self._unreached = self._unreached + 1 if lasting else 0
        if self._unreached >= UNREACHED_MAX:
            self._listed.set()

    @property
    def trouble(self) -> str:
        """Return the last failure since the server answered; empty when there is none."""
        return self._trouble

    @property
    def synced(self) -> bool:
        """Return whether a full list was read."""
        return self._lists_agreeing > 0

    def wait_synced(self, timeout_seconds: float) -> bool:
        """Wait for the first full list; return whether there is one."""
        self._listed.wait(timeout_seconds)
        return self.synced

    def stop_waiting(self) -> None:
        """End all waits for the first full list, now and later."""
        with self._lock:
            self._waits_ended = True
            self._listed.set()

    @property
    def lists_agreeing(self) -> int:
        """Return the number of full lists since the last one with far fewer objects than before.

        Those before a long silence do not count either.
        """
        return self._lists_agreeing

    @property
    def heard_again(self) -> bool:
        """Return whether a long silence has ended, and no list has agreed with the first after it.

        The first list after a start ends none.
        """
        with self._lock:
            return self._came_back and self._lists_agreeing == 1

    def silent_seconds(self) -> float:
        """Return how long nothing was received; infinite before the first answer."""
        answered_at = self._answered_at
        return float("inf") if answered_at is None else self._monotonic() - answered_at

    def held_in(self, key: Key, version: str) -> CachedObject | None:
        """Return an object, if it is cached in exactly this version; versions may be missing."""
        known = self._held.get(key)
        return known if known is not None and version and known.version == version else None

    def put(self, key: Key, held: CachedObject) -> None:
        """Store an object that was added or changed."""
        with self._lock:
            before = self._held.get(key)
            self._held[key] = held
            self._tell(key)
        self._touched()
        if matters(_value(before), _value(held)):
            was, now = _value(before), _value(held)
            self._signal.notify(
                self._source,
                demand=is_new_demand(was, now),
                calm=not asks(was, now),
                namespace=now.key.namespace if isinstance(now, Pod) else "",
            )

    def version_of(self, key: Key) -> str:
        """Return the cached version of an object; empty when it is not cached."""
        held = self._held.get(key)
        return "" if held is None else held.version

    def drop(self, key: Key) -> None:
        """Remove an object that was deleted."""
        with self._lock:
            before = self._held.pop(key, None)
            self._tell(key)
        self._touched()
        if _value(before) is not None:
            self._signal.notify(self._source, calm=True)

    def replace(self, found: dict[Key, CachedObject], *, after_silence: bool = False) -> None:
        """Store a full list; a comparison in progress becomes void, as its list may be older.

        Args:
            found: The list.
            after_silence: Whether the server did not answer for long before it. Then it shows
                kubelets as they were before they reached the server again, and another one has to
                agree with it.
        """
        with self._lock:
            before, self._held = self._held, found
            self._comparison = None
            if after_silence:
                self._came_back = self.synced
            self._count(len(before), len(found))
            if after_silence:
                self._lists_agreeing = 1
        self._listed.set()
        self._touched()
        if before.keys() != found.keys() or any(
            matters(_value(before[key]), _value(held)) for key, held in found.items()
        ):
            self._signal.notify(self._source)

    def compare(self) -> Comparison:
        """Start a comparison with a full list, which must be requested after this; see `settle`."""
        with self._lock:
            self._comparison = Comparison(self._held)
            return self._comparison

    def settle(self, comparison: Comparison) -> bool:
        """Apply a full list that was read during the watch: store its differences.

        Returns:
            Whether it confirms the previous list; True also when the comparison is void.
        """
        with self._lock:
            if self._comparison is not comparison:
                return True
            self._comparison = None
            other, missing = comparison.other(), comparison.missing()
            before = {key: self._held.get(key) for key in other.keys() | missing}
            held = len(self._held)
            self._held.update(other)
            for key in missing:
                self._held.pop(key, None)
            self._count(held, len(self._held))
            agreed = self._lists_agreeing > 1
        self._touched()
        if any(matters(_value(was), _value(other.get(key))) for key, was in before.items()):
            self._signal.notify(self._source)
        return agreed

    def _tell(self, key: Key) -> None:
        if self._comparison is not None:
            self._comparison.note_received(key)

    def _count(self, before: int, found: int) -> None:
        """Note the size of a full list, and of the cache before it."""
        shrunk = before - found > 3 and found < SHRUNK_TO * before
        self._lists_agreeing = 1 if shrunk else self._lists_agreeing + 1

    def read(self) -> tuple[list[Decoded], int]:
        """Return all objects that planning uses, and `lists_agreeing` of the same moment."""
        with self._lock:
            found = [held.decoded for held in self._held.values() if held.decoded is not None]
            return found, self._lists_agreeing


def _value(held: CachedObject | None) -> ClusterObject | None:
    return None if held is None or held.decoded is None else held.decoded.value

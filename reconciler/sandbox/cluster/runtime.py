"""One thread that runs every controller: takes changes, reconciles keys, keeps timers.

Level-triggered, as Kubernetes' controllers are: a change only says which keys to check, and
`reconcile` reads the current state. A single thread makes runs repeatable and costs little.
"""

import heapq
import itertools
import logging
import queue
import threading
import time
from collections.abc import Hashable, Iterable
from typing import Protocol

from reconciler.model.errors import ReconcilerError
from reconciler.sandbox.cluster.objects.resources import RESOURCES
from reconciler.sandbox.cluster.objects.store import Change, Store

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 1.0


class Controller(Protocol):
    """Brings objects of one kind to the state in their specs."""

    def observe(self, change: Change) -> Iterable[Hashable]:
        """Return the keys to check after a change."""
        ...

    def reconcile(self, key: Hashable) -> float | None:
        """Reconcile one key; return the seconds until the next time, None: at its next change."""
        ...


class Runtime:
    """The thread, its queue and its timers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._controllers: list[Controller] = []
        self._changes: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        self._ready: dict[tuple[int, Hashable], None] = {}
        self._due: dict[tuple[int, Hashable], float] = {}
        self._timers: list[tuple[float, int, tuple[int, Hashable]]] = []
        self._numbers = itertools.count()
        self._running = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="controllers")

    def add(self, controller: Controller) -> None:
        """Register a controller; before `start`. Earlier ones come first in a round."""
        self._controllers.append(controller)

    @property
    def running(self) -> bool:
        """Return whether controllers run."""
        return self._running and self._thread.is_alive()

    def start(self) -> None:
        """Reconcile everything that exists, then follow changes."""
        with self._store.transaction():
            self._store.listen(self._changes.put)
            for resource in RESOURCES:
                for entry in self._store.objects(resource)[0]:
                    self._changes.put(Change("ADDED", entry, None))
        self._running = True
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the current key."""
        self._running = False
        self._changes.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while self._running:
            self._take_changes()
            self._take_timers()
            ready, self._ready = self._ready, {}
            for place, key in ready:
                self._reconcile(place, key)

    def _take_changes(self) -> None:
        """Take all waiting changes; when there are none, wait for one or for a timer."""
        try:
            change = self._changes.get(timeout=self._wait_seconds())
            while change is not None:
                self._dispatch(change)
                change = self._changes.get_nowait()
        except queue.Empty:
            return

    def _wait_seconds(self) -> float | None:
        if self._ready:
            return 0.0
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _take_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, _, item = heapq.heappop(self._timers)
            if self._due.get(item) == due:
                del self._due[item]
                self._ready[item] = None

    def _dispatch(self, change: Change) -> None:
        for place, controller in enumerate(self._controllers):
            try:
                for key in controller.observe(change):
                    self._ready[place, key] = None
            except Exception:  # noqa: BLE001 - see _reconcile
                _LOG.exception("controller_observe_failed")

    def _reconcile(self, place: int, key: Hashable) -> None:
        try:
            again = self._controllers[place].reconcile(key)
        except ReconcilerError:
            again = _RETRY_SECONDS
        except Exception:  # noqa: BLE001 - an object no rule foresaw must not stop the cluster
            _LOG.exception("controller_reconcile_failed key=%s", key)
            again = None
        item = (place, key)
        if again is None:
            self._due.pop(item, None)
            return
        due = time.monotonic() + max(0.0, again)
        self._due[item] = due
        heapq.heappush(self._timers, (due, next(self._numbers), item))

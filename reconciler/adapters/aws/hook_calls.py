"""Sends completions and heartbeats to lifecycle hooks, in a thread of its own.

Auto Scaling allows a few of these calls per second. A notice that EC2 takes an instance back comes
two minutes ahead: receiving it must not wait for them.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.lifecycle_hooks import complete_action, record_heartbeat
from reconciler.adapters.aws.queue_failures import COMPLETE
from reconciler.adapters.aws.request_limits import SHARE
from reconciler.model.errors import OutcomeUnknown, PortError
from reconciler.model.notices import LifecycleAction
from reconciler.model.throttling import auto_scaling_bucket

HEARTBEAT_SECONDS: Final = 25.0
"""Between two heartbeats for an instance that is being drained; the shortest timeout of a hook is
30 s."""
HEARTBEATS_MAX: Final = 40
"""A node that is not empty after this many ends when the hook's own timeout is over."""
_PER_SECOND: Final = auto_scaling_bucket("RecordLifecycleActionHeartbeat").per_second * SHARE
WAITING_MAX: Final = int(_PER_SECOND * HEARTBEAT_SECONDS)
"""The limit of queued heartbeats: as many as can be sent until the next ones are due. With more
instances each gets heartbeats less often, the one with the oldest heartbeat first."""
_HEARTBEATS_AT_ONCE: Final = 2
_COMPLETIONS_AT_ONCE: Final = 4


class HookCalls:
    """Sends heartbeats and completions of lifecycle hooks, each in a few threads of their own.

    Args:
        clients: Creates the clients; their fence applies to every call.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._lock = threading.Lock()
        self._waiting = 0
        self._heartbeats = ThreadPoolExecutor(_HEARTBEATS_AT_ONCE, thread_name_prefix="heartbeat")
        self._completions = ThreadPoolExecutor(_COMPLETIONS_AT_ONCE, thread_name_prefix="complete")

    @property
    def room(self) -> int:
        """Return how many more heartbeats may be queued now."""
        with self._lock:
            return WAITING_MAX - self._waiting

    def beat(self, hook: LifecycleAction, still_wanted: Callable[[], bool]) -> None:
        """Send a heartbeat in its turn, if it is still wanted then."""

        def send() -> None:
            try:
                if still_wanted():
                    with suppress(PortError):  # the hook's timeout continues; another beat follows
                        record_heartbeat(self._clients, hook)
            finally:
                with self._lock:
                    self._waiting -= 1

        with self._lock:
            self._waiting += 1
        self._heartbeats.submit(send)

    def complete(self, hook: LifecycleAction, ended: Callable[[PortError | None], object]) -> None:
        """Complete the action, so that the instance ends, in another thread.

        `ended` is called there with the error, or with None when it was completed.
        """

        def send() -> None:
            error: PortError | None = None
            try:
                complete_action(self._clients, hook)
            except PortError as found:
                error = found
            except Exception as found:  # noqa: BLE001 - else its message stays held
                error = OutcomeUnknown(COMPLETE, f"{type(found).__name__}: {found}")
            ended(error)

        self._completions.submit(send)

    def close(self) -> None:
        """Send nothing more."""
        for pool in (self._heartbeats, self._completions):
            pool.shutdown(wait=False, cancel_futures=True)

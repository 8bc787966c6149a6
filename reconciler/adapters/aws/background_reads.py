"""Reads in the background of the cycles, at most one per region."""

import threading
from collections.abc import Callable

from reconciler.model.errors import PortError
from reconciler.model.ids import Region
from reconciler.telemetry.threads import log_bug


class BackgroundReads:
    """Threads that fetch an answer while cycles use the previous one.

    Args:
        name: The name of the threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._threads: dict[Region, threading.Thread] = {}

    def begin(self, region: Region, fetch: Callable[[], object]) -> None:
        """Fetch in a thread, unless a fetch for the region is in progress.

        A failure is left to the next cycle, which asks itself and reports it; a bug is logged.
        """

        def run() -> None:
            try:
                fetch()
            except PortError:
                pass
            except Exception:  # noqa: BLE001 - the cycle that asks by itself meets it too
                log_bug()
            finally:
                with self._lock:
                    del self._threads[region]

        with self._lock:
            if region not in self._threads:
                thread = threading.Thread(target=run, name=f"{self._name}-{region}", daemon=True)
                self._threads[region] = thread
                thread.start()

    def close(self) -> None:
        """Wait until no fetch is in progress."""
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

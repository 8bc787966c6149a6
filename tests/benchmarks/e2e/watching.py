"""When watchers are told of pods: what a batching window gathers."""

import re
import threading
import time
from collections.abc import Sequence
from typing import Self

from reconciler.adapters.kubernetes import Transport
from reconciler.model.errors import ReconcilerError
from tests.benchmarks.e2e.objects import PODS_PATH
from tests.benchmarks.e2e.waiting import until

_NAME = re.compile(rb'"name":"([^"]+)"')
_SILENCE_SECONDS = 3600.0
_TOLD_SECONDS = 120.0


class Watcher:
    """A watch of pods without a node, beside the reconciler's own.

    Args:
        api: The API server.
    """

    def __init__(self, api: Transport) -> None:
        query = {"watch": "1", "fieldSelector": "spec.nodeName="}
        self._stream = api.stream(PODS_PATH, query, _SILENCE_SECONDS)
        self._told: dict[str, float] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True, name="watcher")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.interrupt()
        self._thread.join()
        self._stream.close()

    def moments(self, names: Sequence[str]) -> list[float]:
        """Wall-clock seconds at which each pod was first told of, in the order of the names."""
        until(
            "watchers are told of all pods", lambda: self._told.keys() >= set(names), _TOLD_SECONDS
        )
        return [self._told[name] for name in names]

    def _listen(self) -> None:
        try:
            for line in self._stream.lines():
                found = _NAME.search(line)
                if found:
                    now = time.time()  # noqa: TID251 - compared with EC2's log of calls
                    self._told.setdefault(found[1].decode(), now)
        except ReconcilerError:
            return  # interrupted, or whoever waits for a moment says that it never came

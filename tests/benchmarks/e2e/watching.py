"""When watchers are told of pods: what a batching window gathers."""

import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from reconciler.adapters.kubernetes import Transport
from reconciler.adapters.kubernetes.transport import Stream
from reconciler.model.errors import ReconcilerError
from tests.benchmarks.e2e.objects import PODS_PATH
from tests.benchmarks.e2e.waiting import until

_EVENT = re.compile(rb'"name":"([^"]+)".*?"resourceVersion":"(\d+)"')
_SILENCE_SECONDS = 3600.0
_TOLD_SECONDS = 120.0


class Watcher:
    """A watch of pods without a node, beside the reconciler's own.

    Args:
        api: The API server.
    """

    def __init__(self, api: Transport) -> None:
        self._api = api
        self._version = ""
        self._told: dict[str, float] = {}
        self._ending = False
        self._stream = self._watch()
        self._thread = threading.Thread(target=self._listen, daemon=True, name="watcher")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        self._stream.interrupt()
        self._thread.join()
        self._stream.close()

    def moments(self, names: Sequence[str]) -> list[float]:
        """Wall-clock seconds at which each pod was first told of, in the order of the names."""
        until(
            "watchers are told of all pods", lambda: self._told.keys() >= set(names), _TOLD_SECONDS
        )
        return [self._told[name] for name in names]

    def _watch(self) -> Stream:
        """From the last version that was told; at first from how things are."""
        query = {"watch": "1", "fieldSelector": "spec.nodeName="}
        if self._version:
            query["resourceVersion"] = self._version
        return self._api.stream(PODS_PATH, query, _SILENCE_SECONDS)

    def _listen(self) -> None:
        """Note names; the API server closes watches that a thousand events at once run over."""
        with suppress(ReconcilerError):  # whoever waits for a moment says that it never came
            while not self._ending:
                for line in self._stream.lines():
                    self._note(line)
                if not self._ending:
                    self._stream.close()
                    self._stream = self._watch()

    def _note(self, line: bytes) -> None:
        found = _EVENT.search(line)
        if found:
            now = time.time()  # noqa: TID251 - compared with EC2's log of calls
            self._told.setdefault(found[1].decode(), now)
            self._version = found[2].decode()

"""Connections to a forge that another thread can close during a request."""

import socket
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import urllib3


class Connections:
    """Connections to one address, kept for the next request.

    Otherwise a call that was abandoned would continue in its thread for as long as the server keeps
    it open.
    """

    def __init__(self, url: str, timeout_seconds: float) -> None:
        timeout = urllib3.Timeout(connect=timeout_seconds, read=timeout_seconds)
        self.pool = urllib3.PoolManager(timeout=timeout, maxsize=1)
        self._lock = threading.Lock()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._ended = False
        # Requests to this address use this one pool of the manager.
        pool = self.pool.connection_from_url(url)
        make = pool.ConnectionCls
        pool.ConnectionCls = lambda **options: self._watched(make(**options))  # type: ignore[assignment]

    def end(self) -> None:
        """Close: waiting requests fail at once, and no new connection is opened."""
        with self._lock:
            self._ended = True
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self.pool.clear()

    def _watched(self, connection: Any) -> Any:
        connect = connection.connect

        def connect_watched() -> None:
            connect()
            with self._lock:
                if self._ended:
                    raise OSError("the call was given up")
                self._sockets.add(connection.sock)

        connection.connect = connect_watched
        return connection

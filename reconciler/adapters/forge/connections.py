"""Connections to a forge that another thread can close during a request."""

import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import urllib3
from urllib3.util import make_headers


class Connections:
    """Connections to one address, kept for the next request.

    Otherwise a call that was abandoned would continue in its thread for as long as the server keeps
    it open.
    """

    def __init__(self, url: str, timeout_seconds: float) -> None:
        timeout = urllib3.Timeout(connect=timeout_seconds, read=timeout_seconds)
        self.pool = _manager(url, timeout)
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


def _manager(url: str, timeout: urllib3.Timeout) -> urllib3.PoolManager:
    """Return a manager that uses the proxy which the environment names for the address, if any."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return urllib3.PoolManager(timeout=timeout, maxsize=1)
    address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    user = (
        None
        if address.username is None
        else f"{unquote(address.username)}:{unquote(address.password or '')}"
    )
    headers = None if user is None else make_headers(proxy_basic_auth=user)
    place = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
    return urllib3.ProxyManager(place, proxy_headers=headers, timeout=timeout, maxsize=1)

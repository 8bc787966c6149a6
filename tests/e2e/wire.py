"""A wire that tests can cut, slow down and listen at: TCP from a free port to another one."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

_CHUNK = 1 << 16
_END_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One of the words that were listened for."""

    at: datetime
    word: str


class Wire:
    """Forwards connections to a port of this machine.

    Args:
        port: Where to.
        words: What to listen for in what clients send.
    """

    def __init__(self, port: int, words: Sequence[str] = ()) -> None:
        self._target = port
        self._words = [(word, word.encode()) for word in words]
        self._whole = threading.Event()
        self._whole.set()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self.delay_seconds = 0.0
        """How long what a client sends takes to arrive."""
        self.heard: list[Heard] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Nothing arrives any more, in either direction, and nobody is told."""
        self._whole.clear()

    def restore(self) -> None:
        """Connections that were cut are gone; new ones work."""
        with self._lock:
            old = list(self._connections)
        for each in old:
            _end(each)
        self._whole.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        _end(self._server)
        self._server.close()
        self.restore()
        for thread in self._threads:
            thread.join(_END_SECONDS)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._connect, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _connect(self, client: socket.socket) -> None:
        with self._open(client):
            self._whole.wait()
            with suppress(OSError):
                server = socket.create_connection(("127.0.0.1", self._target), _END_SECONDS)
                with self._open(server):
                    self._join(client, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        server.settimeout(None)
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server, listens=True)
        back.join()

    @contextmanager
    def _open(self, connection: socket.socket) -> Iterator[None]:
        """One of our connections for as long as the block, closed afterwards."""
        with self._lock:
            self._connections.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _pump(self, source: socket.socket, sink: socket.socket, *, listens: bool = False) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if listens:
                    if self.delay_seconds:
                        self._stopping.wait(self.delay_seconds)
                    self._note(chunk)
                self._whole.wait()
                sink.sendall(chunk)
        for each in (source, sink):
            _end(each)

    def _note(self, chunk: bytes) -> None:
        at = datetime.now(UTC)  # noqa: TID251 - compared with the API server's own stamps
        self.heard.extend(Heard(at, word) for word, encoded in self._words if encoded in chunk)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

"""HTTP requests to one server: bounded in size and time, without proxies and redirects."""

import http.client
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler import __version__
from reconciler.model.errors import Unavailable

FAILURES: Final = (OSError, http.client.HTTPException, ssl.SSLError, ValueError)
_STALE: Final = (ConnectionError, http.client.BadStatusLine, http.client.CannotSendRequest)
USER_AGENT: Final = f"fleet-reconciler-node-watch/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, whatever its status."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    """Names in lower case."""


class HttpClient:
    """Keeps one connection to one server.

    Args:
        connect: Creates a connection, with its timeout.
        body_bytes_max: The limit of an answer; a longer one is refused.
        keep_alive: Whether the connection is reused.
    """

    def __init__(
        self,
        connect: Callable[[], http.client.HTTPConnection],
        *,
        body_bytes_max: int,
        keep_alive: bool,
    ) -> None:
        self._connect = connect
        self._body_bytes_max = body_bytes_max
        self._keep_alive = keep_alive
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Answer:
        """Send one request and read the whole answer.

        Raises:
            Unavailable: There is no answer, or it is too long.
        """
        reused = self._connection is not None
        try:
            try:
                return self._once(method, path, headers, body)
            except _STALE:
                if not reused:
                    raise
                return self._once(method, path, headers, body)  # the server closed an idle one
        except FAILURES as error:
            what = str(error) or type(error).__name__
            raise Unavailable(f"{method} {path}", what) from error

    def close(self) -> None:
        """Give up the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _once(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        answered = False
        try:
            if self._connection is None:
                self._connection = self._connect()
            sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
            self._connection.request(method, path, body=body, headers=sent)
            response = self._connection.getresponse()
            content = response.read(self._body_bytes_max + 1)
            if len(content) > self._body_bytes_max:
                raise ValueError(f"the answer is longer than {self._body_bytes_max} bytes")
            answered = response.isclosed()
            named = {key.lower(): text for key, text in response.getheaders()}
            return Answer(status=response.status, body=content, headers=named)
        finally:
            if not (answered and self._keep_alive):
                self.close()

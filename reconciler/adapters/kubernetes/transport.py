"""Sends requests to the API server with the official client's transport; bodies stay bytes.

The client's typed models cost fifty times what decoding into the model costs; its transport solves
what is hard: kubeconfig, exec plugins, rotating in-cluster tokens, TLS, proxies.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from kubernetes import client

from reconciler import __version__
from reconciler.adapters.kubernetes.errors import (
    FAILURES,
    NotAccepted,
    TooLarge,
    of_failure,
    of_status,
    pause_asked_seconds,
)
from reconciler.model.errors import Forbidden, PortError, Refused, Unavailable
from reconciler.records.times import http_date

MERGE_PATCH = "application/merge-patch+json"
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
PATIENCE_SECONDS = 5.0
"""The longest total wait of one request because the server asks for a pause."""
PAUSE_MIN_SECONDS = 0.5
"""Shorter pauses count as this, so that retries end."""
CHUNK_BYTES = 1 << 20
CONNECTIONS_MAX = 64
"""Two per watched kind (a watch, and a list during it), and one per parallel action."""


class _Request(NamedTuple):
    """What is sent."""

    method: str
    path: str
    query: Mapping[str, Any] | None
    body: Any
    """Encoded as JSON; None: nothing."""
    content_type: str
    """Of the body. Empty for a watch, whose answer must not be compressed: events would be late
    until a block of it is full."""

    @property
    def where(self) -> str:
        """Return what names it in messages."""
        return f"{self.method} {self.path}"

    @property
    def changes(self) -> bool:
        """Return whether it changes anything in the cluster."""
        return self.method != "GET"

    @property
    def headers(self) -> dict[str, str]:
        """Return its headers, without credentials."""
        encoding = "gzip" if self.content_type else "identity"
        headers = {"Accept": "application/json", "Accept-Encoding": encoding}
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        return headers


class Reply(NamedTuple):
    """An answer, whatever its status."""

    where: str
    """The request, for messages."""
    status: int
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> dict[str, Any]:
        """Return the object in the body.

        Raises:
            Unavailable: There is none: something other than the API server answered.
        """
        try:
            found = orjson.loads(self.body)
        except ValueError as error:
            raise Unavailable(self.where, "answered with something that is not JSON") from error
        if not isinstance(found, dict):
            raise Unavailable(self.where, "answered with something that is not an object")
        return found


class Stream:
    """The answer to a watch, read as it arrives."""

    def __init__(self, response: Any, where: str) -> None:
        self._response = response
        self._where = where

    def lines(self) -> Iterator[bytes]:
        """Yield whole lines as they come; ends when the server ends the watch.

        Raises:
            Unavailable: The connection broke or was silent for too long.
        """
        rest = b""
        try:
            while chunk := self._response.read1(CHUNK_BYTES):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line for line in whole if line)
        except (*FAILURES, ValueError) as error:
            raise of_failure(self._where, error, changing=False) from error
        # An incomplete rest was cut off: it comes again, from the version before it.

    def interrupt(self) -> None:
        """End a read that another thread is blocked in."""
        with suppress(*FAILURES, ValueError, RuntimeError):
            self._response.shutdown()

    def close(self) -> None:
        """Close the connection: it cannot be used again while an answer is unread."""
        with suppress(*FAILURES, ValueError):
            self._response.close()


class Transport:
    """Sends requests and translates errors.

    Args:
        api_client: The official client, configured.
        read_seconds: The longest pause of the server within an answer.
        fence: Called right before every request that changes something; False: it is not sent.
        renew: Reads the credentials again; called when the server does not accept them (401).
            Returns why that failed; empty when it did not.
    """

    def __init__(
        self,
        api_client: client.ApiClient,
        *,
        read_seconds: float = READ_SECONDS,
        fence: Callable[[], bool] | None = None,
        renew: Callable[[], str] | None = None,
    ) -> None:
        self._client: Any = api_client
        self._read_seconds = read_seconds
        self._fence = fence
        self._renew = renew
        self._renewing = threading.Lock()
        self._not_renewed = ""
        """Why there were no newer credentials when they were last read."""
        self._pauses_skipped = threading.Event()
        self._on_date: Callable[[datetime], None] | None = None
        self._client.user_agent = f"fleet-reconciler/{__version__}"

    def listen_to_dates(self, on_date: Callable[[datetime], None]) -> None:
        """Call `on_date` with the server's time of each answer from now on."""
        self._on_date = on_date

    @property
    def host(self) -> str:
        """Return the server's address."""
        return str(self._client.configuration.host)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        bytes_max: int | None = None,
    ) -> Reply:
        """Send one request and read the whole answer; refusals are answers too.

        When a busy server (429) states a pause, the request is retried after it, a few times.

        Raises:
            TooLarge: The answer has more than `bytes_max`, if there is such a limit.
            Unavailable: No answer; nothing was changed.
            Refused: The fence is closed; nothing was sent.
            Forbidden: The token cannot be sent.
            OutcomeUnknown: No answer to a request that may have been executed.
        """
        patience_seconds = min(PATIENCE_SECONDS, self._read_seconds / 2)
        request = _Request(method, path, query, body, content_type)
        while True:
            reply = self._once(request, bytes_max)
            pause_seconds = pause_asked_seconds(reply.status, reply.body, reply.headers)
            if pause_seconds is None or pause_seconds > patience_seconds:
                return reply
            # Throttled requests have changed nothing. Source: API priority and fairness.
            patience_seconds -= max(pause_seconds, PAUSE_MIN_SECONDS)
            if self._pauses_skipped.wait(pause_seconds):
                return reply

    def _once(self, request: _Request, bytes_max: int | None) -> Reply:
        try:
            response = self._send(request, self._read_seconds)
            data = _read_body(response.response, request.where, bytes_max)
        except FAILURES as error:
            raise of_failure(
                request.where, error, changing=request.changes, host=self.host
            ) from error
        return Reply(request.where, response.status, data, response.headers)

    def skip_pauses(self) -> None:
        """Skip all pauses that the server requests from now on, because the program ends."""
        self._pauses_skipped.set()

    def expect(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        bytes_max: int | None = None,
    ) -> Reply:
        """Send one request; raise the PortError of an answer other than 2xx (see `request`)."""
        reply = self.request(
            method, path, query=query, body=body, content_type=content_type, bytes_max=bytes_max
        )
        if not 200 <= reply.status < 300:
            raise self._refusal(reply, changing=method != "GET")
        return reply

    def _refusal(self, reply: Reply, *, changing: bool) -> PortError:
        """Return the error of an answer other than 2xx; of a 401, with why credentials are old."""
        error = of_status(reply.where, reply.status, reply.body, reply.headers, changing=changing)
        if isinstance(error, NotAccepted) and self._not_renewed:
            return NotAccepted(error.where, f"{error.what}; {self._not_renewed}", error.hint)
        return error

    def stream(self, path: str, query: Mapping[str, Any], silence_seconds: float) -> Stream:
        """Start a watch.

        Args:
            path: What to watch.
            query: Its parameters.
            silence_seconds: How long the server may send nothing at all.

        Raises:
            PortError: The watch was refused or there was no answer.
        """
        where = f"WATCH {path}"
        try:
            response = self._send(_Request("GET", path, query, None, ""), silence_seconds)
            if response.status != 200:
                body = response.response.data
                reply = Reply(where, response.status, body, response.headers)
                raise self._refusal(reply, changing=False)
        except FAILURES as error:
            raise of_failure(where, error, changing=False, host=self.host) from error
        return Stream(response.response, where)

    def _send(self, request: _Request, read_seconds: float) -> Any:
        """Send a request, once more when only the credentials were too old."""
        used = dict(self._client.configuration.api_key)
        response = self._send_once(request, read_seconds)
        if response.status == HTTPStatus.UNAUTHORIZED and self._has_other_credentials(used):
            response.response.drain_conn()  # else its connection is lost
            response = self._send_once(request, read_seconds)
        return response

    def _has_other_credentials(self, used: Mapping[str, str]) -> bool:
        """Return whether the credentials were renewed since these were used; thread-safe."""
        if self._renew is None:
            return False
        with self._renewing:
            if self._client.configuration.api_key == used:
                self._not_renewed = self._renew()
            return bool(self._client.configuration.api_key != used)

    def _send_once(self, request: _Request, read_seconds: float) -> Any:
        serialized = self._client.param_serialize(
            request.method,
            request.path,
            query_params=list((request.query or {}).items()),
            header_params=request.headers,
            auth_settings=["BearerToken"],
        )
        _, url, sent_headers, _, _ = serialized
        _check_credentials(request.where, sent_headers)
        if request.changes and self._fence is not None and not self._fence():
            raise Refused(request.where, "this replica is not the leader")
        response = self._client.call_api(
            request.method,
            url,
            sent_headers,
            request.body,
            None,
            _request_timeout=(CONNECT_SECONDS, read_seconds),
        )
        moment = http_date(response.headers.get("Date"))
        if moment is not None and self._on_date is not None:
            self._on_date(moment)
        return response

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def _check_credentials(where: str, headers: Mapping[str, str]) -> None:
    """Raise Forbidden for a token that no header can hold, without showing any of it."""
    for name, value in headers.items():
        if name.lower() == "authorization" and not (value.isascii() and value.isprintable()):
            what = "the token of its credentials contains a line break or another such character"
            raise Forbidden(where, what)


def _read_body(response: Any, where: str, bytes_max: int | None) -> bytes:
    """Return the body; raise TooLarge as soon as it has more bytes than the limit."""
    if bytes_max is None:
        return bytes(response.data)
    found = bytearray()
    for chunk in response.stream(CHUNK_BYTES, decode_content=True):
        found += chunk
        if len(found) > bytes_max:
            response.close()  # the connection is of no use before the rest is read
            raise TooLarge(where, f"answered more than {bytes_max:,} bytes")
    response.release_conn()
    return bytes(found)

"""JSON over HTTP with a bearer token: what GitHub and GitLab have in common."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
)
from urllib3.response import BaseHTTPResponse

from reconciler import __version__
from reconciler.adapters.forge.connections import Connections
from reconciler.adapters.forge.settings import ForgeSettings
from reconciler.machine.deadline import within
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
    Unavailable,
    why_not_reached,
)
from reconciler.telemetry.scrubbing import scrub

Method = Literal["GET", "POST", "PUT", "PATCH"]
Json: TypeAlias = Any
"""Unverified data from the server."""

ANSWER_BYTES_MAX = 16 * 1024 * 1024
PAGE_ENTRIES = 100
PAGES_MAX = 10
SECONDS_DIGITS_MAX = 12
"""Digits of a number in a header; GitHub's times have ten."""
_NO_REPLY = "sent, but no reply came"
_NOT_SENT = (NewConnectionError, ConnectTimeoutError, NameResolutionError)


class RestClient:
    """Calls below one API root.

    Redirects are not followed: a token belongs to the host it was given for. Reads are tried
    three times, writes once, since a lost reply may hide a success.

    Args:
        settings: Address and token.
        name: The forge's name in messages.
    """

    def __init__(self, settings: ForgeSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._owner: str | None = None
        self._connections = self._connected()

    def _connected(self) -> Connections:
        return Connections(self._settings.api_url, self._settings.timeout_seconds)

    def get(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Json:
        """Read; raise the errors of the Forge port."""
        return self._call("GET", f"{path}?{urlencode(query)}", None, headers)

    def pages(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Iterator[Json]:
        """Yield the entries of a list, page by page, a thousand at most; raise as `get`."""
        for page in range(1, PAGES_MAX + 1):
            asked = {**query, "per_page": str(PAGE_ENTRIES), "page": str(page)}
            entries = self.get(path, asked, headers)
            if not isinstance(entries, list):
                raise Unavailable(
                    f"{self._name} GET {path}", "answered with something that is not a list"
                )
            yield from entries
            if len(entries) < PAGE_ENTRIES:
                return

    def who(self, path: str, key: str, headers: Mapping[str, str]) -> str:
        """Return the name of the token's owner, cached; empty when the token may not ask.

        Raises:
            PortError: The forge does not answer now; ask again later.
        """
        if self._owner is None:
            try:
                answer = self.get(path, {}, headers)
            except (Forbidden, NotFound):
                answer = None
            self._owner = str(answer.get(key) or "") if isinstance(answer, Mapping) else ""
        return self._owner

    def post(self, path: str, body: Mapping[str, str], headers: Mapping[str, str]) -> Json:
        """Create; raise the errors of the Forge port, Conflict for what exists already."""
        return self._call("POST", path, body, headers)

    def change(
        self,
        method: Literal["PUT", "PATCH"],
        path: str,
        body: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> Json:
        """Change what exists; raise the errors of the Forge port."""
        return self._call(method, path, body, headers)

    def _call(
        self, method: Method, path: str, body: Json | None, headers: Mapping[str, str]
    ) -> Json:
        where = f"{self._name} {method} {path.partition('?')[0]}"
        content = None if body is None else json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"fleet-reconciler/{__version__}",
            **headers,
        }
        pool = self._connections.pool
        try:
            answer, answered = within(
                self._settings.answer_seconds,
                lambda: _asked(pool, method, self._settings.api_url + path, content, headers),
            )
        except TimeoutError as error:
            self._connections.end()
            self._connections = self._connected()
            raise _too_late(where, method, error) from None
        except HTTPError as error:
            raise _no_answer(where, method, error) from None
        return self._read(where, answer, answered)

    def _read(self, where: str, answer: BaseHTTPResponse, content: bytes) -> Json:
        try:
            document = json.loads(content) if content else None
        except (ValueError, RecursionError):
            document = None
        if 200 <= answer.status < 300:
            if document is None:
                raise Unavailable(where, "answered with something that is not JSON")
            return document
        message = scrub(_message(document), (self._settings.read_token(),))
        raise _refusal(where, answer, message)


def _asked(
    pool: urllib3.PoolManager,
    method: Method,
    url: str,
    content: bytes | None,
    headers: Mapping[str, str],
) -> tuple[BaseHTTPResponse, bytes]:
    """Return the answer and its content, cut at the limit."""
    tries = 2 if method == "GET" else 0
    answer = pool.request(
        method,
        url,
        body=content,
        headers=headers,
        retries=urllib3.Retry(
            tries, redirect=False, status=0, raise_on_status=False, backoff_factor=0.2
        ),
        redirect=False,
        preload_content=False,
    )
    with answer:
        return answer, answer.read(ANSWER_BYTES_MAX)


def _no_answer(where: str, method: Method, error: HTTPError) -> PortError:
    reason = error.reason if isinstance(error, MaxRetryError) else error
    if method != "GET" and not isinstance(reason, _NOT_SENT):
        return OutcomeUnknown(where, _NO_REPLY)
    return _not_reached(where, why_not_reached(reason or error))


def _too_late(where: str, method: Method, error: TimeoutError) -> PortError:
    if method != "GET":
        return OutcomeUnknown(where, _NO_REPLY)
    return _not_reached(where, str(error))


def _not_reached(where: str, why: str) -> Unavailable:
    hint = "check the address, the network and the proxy"
    return Unavailable(where, f"not reached: {why}", hint)


def _refusal(where: str, answer: BaseHTTPResponse, message: str) -> PortError:
    status = answer.status
    what = f"answered {status}" + (f": {message}" if message else "")
    headers = answer.headers
    if status == 429 or (
        status == 403 and (headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers)
    ):
        return Throttled(where, what, _pause_seconds(headers))
    if status in {401, 403}:
        return Forbidden(where, what, "check the token and its rights")
    if status == 404:
        return NotFound(where, what, "private repositories look missing without rights")
    if status in {409, 422}:
        return Conflict(where, what)
    return Unavailable(where, what) if status >= 500 else Refused(where, what)


def _pause_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the pause of `Retry-After` (seconds), or until GitHub's window ends."""
    after = _whole_seconds(headers.get("retry-after", ""))
    if after is not None:
        return after
    reset = _whole_seconds(headers.get("x-ratelimit-reset", ""))
    if reset is not None:
        # The header is a wall-clock time; only the difference leaves this function.
        return max(0.0, reset - time.time())  # noqa: TID251 - as above
    return None


def _whole_seconds(text: str) -> float | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= SECONDS_DIGITS_MAX
    return float(text) if is_number else None


def _message(document: Json) -> str:
    """Return the forge's error message on one line, bounded."""
    if not isinstance(document, dict):
        return ""
    parts = [document.get("message"), document.get("error")]
    errors = document.get("errors")
    if isinstance(errors, list):
        parts += [error.get("message") for error in errors if isinstance(error, dict)]
    texts = [part if isinstance(part, str) else json.dumps(part) for part in parts if part]
    return " ".join("; ".join(texts).split())[:300]

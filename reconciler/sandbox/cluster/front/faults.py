"""Injected faults of the API server: which request meets what, and how it shows."""

import threading
import time
from collections.abc import Iterator
from datetime import datetime

import orjson

from reconciler.sandbox.cluster.front.call_log import KubeCall
from reconciler.sandbox.cluster.objects.status import (
    STALE,
    ApiError,
    conflict,
    expired,
    internal_error,
)
from reconciler.sandbox.cluster.requests.request import Request, Response, read_target
from reconciler.sandbox.control_api import CLIENT
from reconciler.sandbox.faults.base import ANY, covers
from reconciler.sandbox.faults.kubernetes import RequestFault
from reconciler.sandbox.faults.rules import Rules

_TOO_OLD = "too old resource version: 1 (0)"
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter."
)


class KubeFaults(Rules[RequestFault]):
    """The faults in force; thread-safe."""

    def __init__(self) -> None:
        super().__init__("kubernetes.requests")

    def meet(self, call: KubeCall, request: Request, now: datetime) -> RequestFault | None:
        """Return the fault that a request meets, counted; None for the sandbox's own."""
        if CLIENT in call.user_agent:
            return None
        return self.first(lambda rule: _is_about(rule, call, request), now)


def _is_about(rule: RequestFault, call: KubeCall, request: Request) -> bool:
    if rule.fault == "expired" and call.verb == "list" and "continue" not in request.query:
        return False
    return (
        rule.shows_on(call.verb)
        and covers(rule.resources, call.resource)
        and rule.name in {ANY, call.name}
        and rule.user_agent in call.user_agent
    )


def refusal(  # noqa: PLR0911 - one per fault
    rule: RequestFault, request: Request, call: KubeCall
) -> Response | None:
    """Return the answer in place of the real one; None for faults that let the request through."""
    match rule.fault:
        case "conflict":
            target = read_target(request.path)
            assert target is not None
            return _status(conflict(target.resource, call.name, STALE))
        case "expired" if call.verb == "watch":
            return Response(stream=_expired_watch())
        case "expired":
            return _status(expired(_CONTINUE_TOO_OLD))
        case "too-many-requests":
            # Priority and fairness answers in plain text. Source: apiserver, filters/maxinflight.go
            text = b"Too many requests, please try again later.\n"
            headers = _retry_after(rule)
            return Response(code=429, body=text, content_type="text/plain", headers=headers)
        case "internal-error":
            return _status(internal_error("injected by the fault script"))
        case "service-unavailable":
            error = ApiError(503, "ServiceUnavailable", "the server is currently unable to handle")
            return _status(error, _retry_after(rule))
        case "gateway-timeout":
            message = "Timeout: request did not complete within the allotted timeout"
            return _status(ApiError(504, "Timeout", message, {}))
        case "no-answer":
            return Response(abandoned=True)
        case _:
            return None


def altered(rule: RequestFault, response: Response, stopping: threading.Event) -> Response:
    """Return the real answer as the fault changes it."""
    match rule.fault:
        case "lost-reply":
            return Response(code=response.code, abandoned=True)
        case "empty-list":
            return _emptied(response)
        case "slow-watch" if response.stream is not None:
            return Response(stream=_slow(response.stream, rule.delay_seconds or 0.0, stopping))
        case "dropped-watch" if response.stream is not None:
            return Response(stream=_dropped(response.stream, rule))
        case _:
            return response


def _status(error: ApiError, headers: dict[str, str] | None = None) -> Response:
    return Response(code=error.code, body=orjson.dumps(error.status()), headers=headers or {})


def _retry_after(rule: RequestFault) -> dict[str, str]:
    return {"Retry-After": str(rule.retry_after_seconds)} if rule.retry_after_seconds else {}


def _expired_watch() -> Iterator[bytes]:
    """Yield a watch that starts and expires at once, as the watch cache answers."""
    status = orjson.dumps(expired(_TOO_OLD).status())
    yield b'{"type":"ERROR","object":' + status + b"}\n"


def _emptied(response: Response) -> Response:
    """Return a list of the same version without items."""
    if response.code != 200:
        return response
    body = orjson.loads(response.body)
    metadata = {"resourceVersion": body["metadata"]["resourceVersion"]}
    empty = {**body, "metadata": metadata, "items": []}
    return Response(body=orjson.dumps(empty))


def _slow(
    stream: Iterator[bytes], delay_seconds: float, stopping: threading.Event
) -> Iterator[bytes]:
    for chunk in stream:
        for line in chunk.splitlines(keepends=True) or [b""]:
            if line:
                stopping.wait(delay_seconds)
            yield line


def _dropped(stream: Iterator[bytes], rule: RequestFault) -> Iterator[bytes]:
    """Yield the stream up to the point where the connection breaks."""
    began, seen = time.monotonic(), 0
    for chunk in stream if rule.events or rule.lasts_seconds else ():
        for line in chunk.splitlines(keepends=True) or [b""]:
            yield line
            seen += bool(line)
            if rule.events and seen >= rule.events:
                raise ConnectionResetError
        if rule.lasts_seconds and time.monotonic() - began >= rule.lasts_seconds:
            raise ConnectionResetError
    raise ConnectionResetError

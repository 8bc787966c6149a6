"""The front of the server: logs AWS calls, serves the control API, hands the rest to moto.

One WSGI application. EC2 and what launches instances in it run under the world's lock, because
moto's state is not made for threads; SQS must not, since its long polls wait inside moto.
"""

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from io import BytesIO
from typing import Any

from reconciler.sandbox.aws.call_log import CallLog, HttpRequest, read_call
from reconciler.sandbox.aws.clock import Clock
from reconciler.sandbox.aws.control import Control
from reconciler.sandbox.aws.control_client import PREFIX
from reconciler.sandbox.aws.world import Ec2World

_LOG = logging.getLogger(__name__)
_IN_WORLD = frozenset({"ec2", "autoscaling", "elasticloadbalancing"})
_INTERNAL_ERROR = (
    b'<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>InternalError</Code>'
    b"<Message>An internal error has occurred</Message></Error></Errors>"
    b"<RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>"
)

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class Gateway:
    """The WSGI application of the server."""

    def __init__(
        self, *, moto: Any, world: Ec2World, control: Control, calls: CallLog, clock: Clock
    ) -> None:
        self._moto = moto
        self._world = world
        self._control = control
        self._calls = calls
        self._clock = clock

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = _read_request(environ)
        if request.path.startswith(PREFIX):
            return self._serve_control(request, start_response)
        return self._serve_aws(environ, request, start_response)

    def _serve_control(
        self, request: HttpRequest, start_response: StartResponse
    ) -> Iterable[bytes]:
        status, document = self._control.handle(request)
        answer = json.dumps(document).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]
        start_response(f"{status} {'OK' if status == 200 else 'Error'}", headers)
        return [answer]

    def _serve_aws(
        self, environ: Environ, request: HttpRequest, start_response: StartResponse
    ) -> Iterable[bytes]:
        call = read_call(request, self._clock.now())
        statuses: list[int] = []

        def noting_status(status: str, *rest: Any) -> Any:
            statuses.append(int(status.split(maxsplit=1)[0]))
            return start_response(status, *rest)

        turn: AbstractContextManager[Any] = nullcontext()
        if call.service in _IN_WORLD:
            turn = self._world.turn()
        try:
            with turn:
                answer: Iterable[bytes] = self._moto(environ, noting_status)
        except Exception:  # noqa: BLE001 - the boundary: a client gets AWS's own 500
            _LOG.exception("%s:%s failed inside the emulated AWS", call.service, call.action)
            length = ("Content-Length", str(len(_INTERNAL_ERROR)))
            noting_status("500 Internal Server Error", [("Content-Type", "text/xml"), length])
            answer = [_INTERNAL_ERROR]
        if not request.path.startswith("/moto-api"):
            self._calls.add(replace(call, status=statuses[-1] if statuses else 0))
        return answer


def _read_request(environ: Environ) -> HttpRequest:
    """Take a request's body and put it back for whoever reads next; a chunked one is left."""
    body = b""
    if length := environ.get("CONTENT_LENGTH"):
        body = environ["wsgi.input"].read(int(length))
        environ["wsgi.input"] = BytesIO(body)
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or name == "CONTENT_TYPE"
    }
    return HttpRequest(
        method=environ["REQUEST_METHOD"],
        path=str(environ.get("PATH_INFO", "")),
        query=str(environ.get("QUERY_STRING", "")),
        headers=headers,
        body=body,
    )

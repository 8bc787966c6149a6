"""Handles requests first: logs AWS calls, serves the control API, passes the rest to moto.

One WSGI application. EC2 and what launches instances in it run under the world's lock, because
moto's state is not thread-safe; SQS must not, because its long polls wait inside moto.
"""

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from socket import SHUT_RDWR
from threading import Event
from typing import Any

from reconciler.sandbox.aws.call_log import AwsCall, CallLog, HttpRequest, read_call
from reconciler.sandbox.aws.clock import Clock
from reconciler.sandbox.aws.front.control import Control
from reconciler.sandbox.aws.front.refusals import REQUEST_LIMIT, body_of, status_of, words_of
from reconciler.sandbox.aws.world import Ec2World
from reconciler.sandbox.control_api import PREFIX
from reconciler.sandbox.faults.aws import CallFault

_LOG = logging.getLogger(__name__)
_IN_WORLD = frozenset({"ec2", "autoscaling", "elasticloadbalancing"})
_NO_PRICES = (
    "InvalidParameterException",
    400,
    "The emulated AWS has no price list: ask AWS, or set AWS_ENDPOINT_URL_PRICING",
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
        self._stopping = Event()

    def stop(self) -> None:
        """End all delays."""
        self._stopping.set()

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
        if request.path.startswith("/moto-api"):
            return self._moto_answer(environ, call, start_response, None)[1]
        script = self._world.faults.script
        if script.throttles(call):
            text = words_of(REQUEST_LIMIT, call.parameters)
            return self._refuse(request, call, start_response, (REQUEST_LIMIT, 503, text))
        if call.service == "pricing":
            return self._refuse(request, call, start_response, _NO_PRICES)
        rule = script.meet(call, lambda: self._world.is_vanished(_instance_ids(call)))
        if rule is None:
            status, answer = self._moto_answer(environ, call, start_response, None)
            self._calls.add(replace(call, status=status))
            return answer
        return self._with_fault(environ, request, call, start_response, rule)

    def _with_fault(
        self,
        environ: Environ,
        request: HttpRequest,
        call: AwsCall,
        start_response: StartResponse,
        rule: CallFault,
    ) -> Iterable[bytes]:
        """Answer a call that meets a fault of the script."""
        call = replace(call, fault=rule.fault)
        if rule.code is not None:
            text = rule.message or words_of(rule.code, call.parameters)
            status = rule.status or status_of(rule.code)
            return self._refuse(request, call, start_response, (rule.code, status, text))
        if rule.fault == "delay":
            self._stopping.wait(rule.delay_seconds)
        answer: Iterable[bytes] = ()
        if rule.fault == "lost-reply":
            self._moto_answer(environ, call, _ignore, rule)
        elif rule.fault != "no-answer":
            status, answer = self._moto_answer(environ, call, start_response, rule)
            self._calls.add(replace(call, status=status))
            return answer
        self._calls.add(call)
        environ["werkzeug.socket"].shutdown(SHUT_RDWR)
        raise ConnectionResetError

    def _moto_answer(
        self,
        environ: Environ,
        call: AwsCall,
        start_response: StartResponse,
        rule: CallFault | None,
    ) -> tuple[int, Iterable[bytes]]:
        """Have moto execute a call; return the status and the body."""
        statuses: list[int] = []

        def noting_status(status: str, *rest: Any) -> Any:
            statuses.append(int(status.split(maxsplit=1)[0]))
            return start_response(status, *rest)

        try:
            with ExitStack() as stack:
                if call.service in _IN_WORLD:
                    now = stack.enter_context(self._world.turn())
                    if rule is not None and rule.age_seconds is not None:
                        moment = now - timedelta(seconds=rule.age_seconds)
                        stack.enter_context(self._world.as_of(moment))
                answer: Iterable[bytes] = self._moto(environ, noting_status)
        except Exception:  # noqa: BLE001 - the boundary: a client gets AWS's own 500
            _LOG.exception("%s:%s failed inside the emulated AWS", call.service, call.action)
            is_json = "HTTP_X_AMZ_TARGET" in environ
            words = "InternalError", "An internal error has occurred"
            content_type, body = body_of(call.service, *words, is_json=is_json)
            headers = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
            noting_status("500 Internal Server Error", headers)
            answer = [body]
        return (statuses[-1] if statuses else 0), answer

    def _refuse(
        self,
        request: HttpRequest,
        call: AwsCall,
        start_response: StartResponse,
        error: tuple[str, int, str],
    ) -> Iterable[bytes]:
        """Answer with an error code, a status and a text, and change nothing."""
        code, status, text = error
        is_json = "x-amz-target" in request.headers
        content_type, body = body_of(call.service, code, text, is_json=is_json)
        self._calls.add(replace(call, status=status, fault=call.fault or "throttled"))
        headers = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
        start_response(f"{status} Error", headers)
        return [body]


def _ignore(*_answer: Any) -> None:
    """Discard an answer: the client must not receive it."""


def _instance_ids(call: AwsCall) -> list[str]:
    return [value for key, value in call.parameters.items() if key.startswith("InstanceId.")]


def _read_request(environ: Environ) -> HttpRequest:
    """Read a request's body and put it back for the next reader; a chunked one is left."""
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

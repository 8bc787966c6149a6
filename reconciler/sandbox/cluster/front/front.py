"""What a request passes before the API server itself: the log, the faults, the control API."""

import threading
from collections.abc import Callable
from dataclasses import replace

from reconciler.sandbox.cluster.clock import Now
from reconciler.sandbox.cluster.front.call_log import KubeCallLog, read_call
from reconciler.sandbox.cluster.front.control import KubeControl
from reconciler.sandbox.cluster.front.faults import KubeFaults, altered, refusal
from reconciler.sandbox.cluster.requests.request import Request, Response
from reconciler.sandbox.control_api import PREFIX

_CONTROL = PREFIX.strip("/")


class Front:
    """Logs each request and applies faults to it, and passes it to the router.

    Args:
        answer: Answers a request; the router's.
        now: The clock of the log and the faults.
    """

    def __init__(self, answer: Callable[[Request], Response], now: Now) -> None:
        self._answer = answer
        self._now = now
        self._stopping = threading.Event()
        self.calls = KubeCallLog()
        self.faults = KubeFaults()
        self._control = KubeControl(self.faults, self.calls, now)

    def stop(self) -> None:
        """End all delays."""
        self._stopping.set()

    def answer(self, request: Request) -> Response:
        """Answer one request, correctly or with a fault."""
        if request.path[:1] == (_CONTROL,):
            return self._control.answer(request)
        now = self._now()
        call = read_call(request, now)
        rule = self.faults.meet(call, request, now)
        response = refusal(rule, request, call) if rule is not None else None
        if response is None:
            if rule is not None and rule.fault == "delay":
                self._stopping.wait(rule.delay_seconds)
            response = self._answer(request)
            if rule is not None:
                response = altered(rule, response, self._stopping)
        status = 0 if response.abandoned else response.code
        self.calls.add(replace(call, status=status, fault="" if rule is None else rule.fault))
        return response

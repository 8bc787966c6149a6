"""The control API of the simulated API server; it needs the same bearer token.

GET    /_sandbox/health   {"status": "ok"}
GET    /_sandbox/calls    ?verb= &resource= &mutating=true|false &user_agent= -> {"counts", "calls"}
DELETE /_sandbox/calls    forget them
GET    /_sandbox/faults   {"requests": [...]}: those in force, each with how often it has `shown`
POST   /_sandbox/faults   {"seed", "requests": [...]}: more of them, with the keys of a fault script
DELETE /_sandbox/faults   take all away
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from reconciler.model.errors import InputError
from reconciler.sandbox.cluster.clock import Now
from reconciler.sandbox.cluster.front.call_log import KubeCallLog, counts
from reconciler.sandbox.cluster.front.faults import KubeFaults
from reconciler.sandbox.cluster.requests.request import Request, Response
from reconciler.sandbox.control_api import read_body
from reconciler.sandbox.faults.kubernetes import KubernetesFaults
from reconciler.sandbox.faults.script import read_document, read_seed

Body = Mapping[str, Any]


class KubeControl:
    """Answers requests of the control API.

    Args:
        faults: The faults in force.
        calls: The requests so far.
        now: The clock by which faults come and go.
    """

    def __init__(self, faults: KubeFaults, calls: KubeCallLog, now: Now) -> None:
        self._faults = faults
        self._calls = calls
        self._now = now
        self._routes: Mapping[tuple[str, str], Callable[[Request], Body]] = MappingProxyType(
            {
                ("GET", "health"): lambda _request: {"status": "ok"},
                ("GET", "calls"): self._get_calls,
                ("DELETE", "calls"): self._delete_calls,
                ("GET", "faults"): self._get_faults,
                ("POST", "faults"): self._post_faults,
                ("DELETE", "faults"): self._delete_faults,
            }
        )

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        route = self._routes.get((request.method, "/".join(request.path[1:])))
        try:
            if route is None:
                return _json({"error": f"no {request.method} {'/'.join(request.path)} here"}, 404)
            return _json(route(request))
        except InputError as error:
            return _json({"error": str(error)}, 400)

    def _get_calls(self, request: Request) -> Body:
        query = request.query
        mutating = query.get("mutating")
        kube_calls = self._calls.calls(
            verb=query.get("verb"),
            resource=query.get("resource"),
            mutating=None if mutating is None else mutating == "true",
            user_agent=query.get("user_agent", ""),
        )
        return {"counts": counts(kube_calls), "calls": [call.to_json() for call in kube_calls]}

    def _delete_calls(self, _request: Request) -> Body:
        self._calls.clear()
        return {}

    def _get_faults(self, _request: Request) -> Body:
        return {"requests": self._faults.shown()}

    def _post_faults(self, request: Request) -> Body:
        seed, document = read_seed(read_body(request.body))
        faults = read_document(KubernetesFaults, document)
        self._faults.put(faults.requests, self._now(), seed)
        return self._get_faults(request)

    def _delete_faults(self, _request: Request) -> Body:
        self._faults.clear()
        return {}


def _json(body: Body, code: int = 200) -> Response:
    return Response(code=code, body=orjson.dumps(body))

"""Which AWS calls were made: time, service, action, parameters and how they were answered."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from urllib.parse import parse_qsl

_READING = ("Describe", "Get", "List", "Head", "Lookup", "Simulate", "Receive", "Query", "Search")
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_NOT_MUTATING = frozenset({"AssumeRole", "AssumeRoleWithWebIdentity"})
_KEEP = 100_000
"""Calls kept; older ones are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCall:
    """One call as it arrived, and its answer's status."""

    at: datetime
    service: str
    """Signing name, such as `ec2`."""
    region: str
    action: str
    """EC2's and SQS's action name; for S3 the HTTP method."""
    mutating: bool
    """Whether the call may change something, judged by its name."""
    parameters: Mapping[str, str]
    """Flat, as on the wire (`FleetId`, `InstanceId.1`); for S3 `Path` and `Query`."""
    status: int
    """HTTP status of the answer; 0 when there was none."""
    user_agent: str = ""
    fault: str = ""
    """The fault of the script that applied; `throttled` for an empty bucket."""

    def to_json(self) -> dict[str, object]:
        """Return the call for JSON."""
        return {
            "at": self.at.isoformat(),
            "service": self.service,
            "region": self.region,
            "action": self.action,
            "mutating": self.mutating,
            "parameters": dict(self.parameters),
            "status": self.status,
            "user_agent": self.user_agent,
            "fault": self.fault,
        }


class CallLog:
    """The calls so far, oldest first; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: list[AwsCall] = []

    def add(self, call: AwsCall) -> None:
        """Add a call that was answered."""
        with self._lock:
            self._calls.append(call)
            del self._calls[:-_KEEP]

    def clear(self) -> None:
        """Remove all calls."""
        with self._lock:
            self._calls.clear()

    def calls(
        self,
        *,
        service: str | None = None,
        action: str | None = None,
        mutating: bool | None = None,
        user_agent: str = "",
    ) -> tuple[AwsCall, ...]:
        """Return the calls that match; None matches all, `user_agent` is a part of the header."""
        with self._lock:
            return tuple(
                call
                for call in self._calls
                if service in {None, call.service}
                and action in {None, call.action}
                and mutating in {None, call.mutating}
                and user_agent in call.user_agent
            )

    def counts(self) -> Mapping[str, int]:
        """Return the number of calls per `service:action`, sorted by name."""
        with self._lock:
            counted = Counter(f"{call.service}:{call.action}" for call in self._calls)
        return dict(sorted(counted.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request as it arrived."""

    method: str
    path: str
    query: str
    """Without the question mark."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


def read_call(request: HttpRequest, at: datetime) -> AwsCall:
    """Return the call of a request; its status is 0 until it is answered."""
    service, region = _scope(request.headers.get("authorization", ""))
    target = request.headers.get("x-amz-target")
    form = _form(request)
    if target is not None:
        action, parameters = target.rpartition(".")[2], _flat_json(request.body)
        mutating = _is_mutating(action)
    elif "Action" in form:
        action = form.pop("Action")
        parameters, mutating = form, _is_mutating(action)
    else:
        service, action = service or "s3", request.method
        parameters = {"Path": request.path, "Query": request.query}
        mutating = request.method not in _READING_METHODS
    return AwsCall(
        at=at,
        service=service,
        region=region,
        action=action,
        mutating=mutating,
        parameters=parameters,
        status=0,
        user_agent=request.headers.get("user-agent", ""),
    )


def _form(request: HttpRequest) -> dict[str, str]:
    """Return the fields of a query-protocol call, from body or URL; empty when it is none."""
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        text = request.body.decode("utf-8", "replace")
    else:
        text = request.query
    return dict(parse_qsl(text, keep_blank_values=True))


def _is_mutating(action: str) -> bool:
    return not action.startswith(_READING) and action not in _NOT_MUTATING


def _scope(authorization: str) -> tuple[str, str]:
    """Return service and Region from the credential scope of a signature; empty when unsigned."""
    _, _, credential = authorization.partition("Credential=")
    parts = credential.split(",")[0].split("/")
    return (parts[3], parts[2]) if len(parts) >= 5 else ("", "")


def _flat_json(body: bytes) -> dict[str, str]:
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in document.items()}

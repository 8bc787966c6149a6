"""The log of requests to the API server: verb, resource, client, answer."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from reconciler.sandbox.cluster.requests.request import Request, read_target

_VERBS: Mapping[str, str] = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_MUTATING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_KEEP = 100_000
"""Requests kept; older ones are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeCall:
    """One request as it arrived, and its answer's status."""

    at: datetime
    verb: str
    """As in RBAC: get, list, watch, create, update, patch, delete, deletecollection."""
    resource: str
    """As in RBAC, such as `pods/eviction`; the path of what is no resource."""
    namespace: str
    name: str
    mutating: bool
    """Whether it may change something that is stored."""
    user_agent: str
    status: int = 0
    """HTTP status of the answer; 0 when there was none."""
    fault: str = ""
    """The fault of the script that applied."""

    def to_json(self) -> dict[str, object]:
        """Ready for JSON."""
        values: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "at": self.at.isoformat()}


class KubeCallLog:
    """The requests so far, oldest first; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: deque[KubeCall] = deque(maxlen=_KEEP)

    def add(self, call: KubeCall) -> None:
        """Add a request that was answered, or dropped."""
        with self._lock:
            self._calls.append(call)

    def clear(self) -> None:
        """Remove all requests."""
        with self._lock:
            self._calls.clear()

    def calls(
        self,
        *,
        verb: str | None = None,
        resource: str | None = None,
        mutating: bool | None = None,
        user_agent: str = "",
    ) -> tuple[KubeCall, ...]:
        """Return the matching requests; None matches all, `user_agent` is a part of the header."""
        with self._lock:
            return tuple(
                call
                for call in self._calls
                if verb in {None, call.verb}
                and resource in {None, call.resource}
                and mutating in {None, call.mutating}
                and user_agent in call.user_agent
            )


def counts(calls: tuple[KubeCall, ...]) -> Mapping[str, int]:
    """Return the number of requests per `verb resource`, sorted."""
    return dict(sorted(Counter(f"{call.verb} {call.resource}" for call in calls).items()))


def read_call(request: Request, at: datetime) -> KubeCall:
    """Return the log entry of a request that was not answered yet."""
    verb = _VERBS.get(request.method, request.method.lower())
    target = read_target(request.path)
    if target is None:
        # Access reviews are created but nothing of them is stored.
        resource, namespace, name = "/" + "/".join(request.path), "", ""
    else:
        namespace, name = target.namespace, target.name
        resource = "/".join(filter(None, (target.resource.plural, target.subresource)))
        verb = _verb_of(verb, request, name)
    stored = target is not None and verb in _MUTATING
    return KubeCall(
        at=at,
        verb=verb,
        resource=resource,
        namespace=namespace,
        name=name,
        mutating=stored and request.query.get("dryRun") != "All",
        user_agent=request.user_agent,
    )


def _verb_of(verb: str, request: Request, name: str) -> str:
    """Return RBAC's verb: lists, watches and deletions of many have their own verbs."""
    if verb == "get":
        if request.flag("watch"):
            return "watch"
        return verb if name else "list"
    return "deletecollection" if verb == "delete" and not name else verb

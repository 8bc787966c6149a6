"""The paths that are served."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import orjson
from prometheus_client import CONTENT_TYPE_LATEST

from reconciler.model.errors import InputError, ReconcilerError, Throttled, Unavailable, UsageError
from reconciler.planner.settings import PlannerSettings
from reconciler.records.explanations import encode_explanations
from reconciler.web.access import NO_RULES, AccessRules
from reconciler.web.board import StatusBoard
from reconciler.web.encoded_plan import EncodedPlan, PlanBody
from reconciler.web.explaining import ASKED_MAX, Explainer, Question
from reconciler.web.listing import query_of
from reconciler.web.metrics import Metrics
from reconciler.web.overview import WORKLOADS_LISTED_MAX, Overviews, overview_json
from reconciler.web.page import PageSource, listed_workloads, page, policy
from reconciler.web.status import status_json

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"

_OTHER_HOST: Final = (
    b"this server does not answer to that host name; ask by address, as localhost, as"
    b" fleet-reconciler.NAMESPACE.svc, or add the name to listen_hosts in the config\n"
)
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer."""

    status: int = 200
    body: bytes | PlanBody = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)

    def parts(self) -> Iterable[bytes]:
        """Return its body, part by part."""
        return (self.body,) if isinstance(self.body, bytes) else self.body

    def all_headers(self) -> dict[str, str]:
        """Return its headers with those of every answer."""
        own = {"Content-Type": self.content_type, "Content-Length": str(len(self.body))}
        if self.status == 304:
            own = {}
        return {**_ALWAYS, "Content-Security-Policy": policy(), **own, **self.headers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The relevant parts of a request other than its method."""

    target: str
    host: str | None = None
    authorization: str | None = None
    if_none_match: str | None = None


class Routes:
    """The paths over a board and its metrics; thread-safe.

    Args:
        board: The state of the program.
        metrics: Its counters.
        access: What a request must present.
        settings: The settings in force, for explanations; None: there are no explanations.
    """

    def __init__(
        self,
        board: StatusBoard,
        metrics: Metrics,
        access: AccessRules = NO_RULES,
        settings: Callable[[], PlannerSettings] | None = None,
    ) -> None:
        self._board = board
        self._metrics = metrics
        self._access = access
        self._encoded = EncodedPlan()
        self._overviews = Overviews()
        self.explainer = Explainer(board, settings)
        self._routes: dict[str, Callable[[str], Answer]] = {
            "/": self._page,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._scrape,
            "/api/status": self._status,
            "/api/plan": self._plan,
            "/api/explain": self._explain,
        }

    def knows(self, target: str) -> bool:
        """Return whether something is served there."""
        return _path(target) in self._routes

    def refusal(self, request: Request) -> Answer | None:
        """Return the refusal of a request, whatever its method; None when it is allowed."""
        asked_for = _host_of_target(request.target)
        if not (self._access.answers_to(request.host) and self._access.answers_to(asked_for)):
            return Answer(status=421, body=_OTHER_HOST)
        if not self._access.admits(_path(request.target), request.authorization):
            headers = {"WWW-Authenticate": 'Bearer realm="fleet-reconciler"'}
            return Answer(status=401, body=b"a bearer token is needed\n", headers=headers)
        return None

    def answer(self, request: Request | str) -> Answer:
        """Return the answer to a GET of this request, or of this request target alone."""
        asked = Request(target=request) if isinstance(request, str) else request
        refused = self.refusal(asked)
        if refused is not None:
            return refused
        path = _path(asked.target)
        route = self._routes.get(path)
        if route is None:
            return Answer(status=404, body=b"not found\n")
        answer = route(asked.target)
        tag = answer.headers.get("ETag")
        if tag is not None and tag in _tags(asked.if_none_match):
            return Answer(status=304, headers=answer.headers)
        return answer

    def _page(self, target: str) -> Answer:
        overview, query = self._overviews.of(self._board.view), query_of(target)
        source = PageSource(
            board=self._board,
            overview=overview,
            remedies=self.explainer.remedies(listed_workloads(overview, query).rows),
            now=self._board.now,
        )
        return Answer(body=page(source, query), content_type=HTML)

    def _healthz(self, _target: str) -> Answer:
        return _verdict("alive", "the loop is stuck", good=self._board.is_alive())

    def _readyz(self, _target: str) -> Answer:
        role = "leader" if self._board.leadership.leads else "standby"
        return _verdict(role, self._board.unready_because, good=self._board.is_ready())

    def _scrape(self, _target: str) -> Answer:
        return Answer(body=self._metrics.text(), content_type=CONTENT_TYPE_LATEST)

    def _status(self, _target: str) -> Answer:
        view = self._board.view
        overview = self._overviews.of(view)
        remedies = self.explainer.remedies(overview.workloads[:WORKLOADS_LISTED_MAX])
        document = status_json(
            self._board, self._encoded.summary, overview_json(view, overview, remedies)
        )
        options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        return Answer(body=orjson.dumps(document, option=options), content_type=JSON)

    def _explain(self, target: str) -> Answer:
        """Answer `?pod=NS/NAME&node=NAME&fleet=NAME`, each any number of times."""
        pairs = _pairs(target)
        asked = _question(pairs)
        if asked is None:
            limit = f"name 1 to {ASKED_MAX} of pod=, node= and fleet="
            return _refused(400, UsageError("/api/explain", limit))
        ours = self._board.view.config.cluster
        if any(kind == "cluster" and name != ours for kind, name in pairs):
            return _refused(409, InputError("/api/explain", f"the reconciler there runs {ours}"))
        try:
            body = encode_explanations(self.explainer.answer(asked))
        except UsageError as error:
            return _refused(404, error)
        except Throttled as error:
            return _refused(429, error)
        except ReconcilerError as error:
            return _refused(503, error)
        return Answer(body=body, content_type=JSON)

    def _plan(self, _target: str) -> Answer:
        plan = self._board.view.plan
        if plan is None:
            return _refused(503, Unavailable("/api/plan", "there is no plan yet"))
        body = self._encoded.whole(plan)
        headers = {"ETag": body.tag, "Cache-Control": "no-cache"}
        return Answer(body=body, content_type=JSON, headers=headers)


def _pairs(target: str) -> list[tuple[str, str]]:
    """Return the parameters of a request; none when there are too many."""
    try:
        return parse_qsl(urlsplit(target).query, max_num_fields=ASKED_MAX + 1)
    except ValueError:
        return []


def _question(pairs: Sequence[tuple[str, str]]) -> Question | None:
    """Return the question; None when it is empty or too long."""
    named = {kind: tuple(v for k, v in pairs if k == kind) for kind in ("pod", "node", "fleet")}
    if not 1 <= sum(map(len, named.values())) <= ASKED_MAX:
        return None
    return Question(pods=named["pod"], nodes=named["node"], fleets=named["fleet"])


def _refused(status: int, error: ReconcilerError) -> Answer:
    document = {"error": str(error), "where": error.where, "what": error.what, "hint": error.hint}
    body = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
    return Answer(status=status, body=body, content_type=JSON)


def _verdict(good_text: str, bad_text: str, *, good: bool) -> Answer:
    text = good_text if good else bad_text
    return Answer(status=200 if good else 503, body=f"{text}\n".encode())


def _host_of_target(target: str) -> str | None:
    """Return the host of an absolute request target; None for the usual form, a path."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return ""
    return parts.netloc or (None if not parts.scheme else "")


def _tags(if_none_match: str | None) -> frozenset[str]:
    """Return the entity tags of an If-None-Match header."""
    tags = (each.strip() for each in (if_none_match or "").split(","))
    return frozenset(tag.removeprefix("W/") for tag in tags)


def _path(target: str) -> str:
    """Return the path of a request target; an invalid target has no route."""
    try:
        return urlsplit(target).path
    except ValueError:
        return ""

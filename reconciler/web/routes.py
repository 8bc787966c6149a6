"""What is served under which path."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import orjson
from prometheus_client import CONTENT_TYPE_LATEST

from reconciler.records.plan import encode_plan
from reconciler.web.board import StatusBoard
from reconciler.web.metrics import Metrics
from reconciler.web.page import POLICY, page
from reconciler.web.status import status_json

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"

_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self) -> dict[str, str]:
        """With those that every answer has."""
        own = {"Content-Type": self.content_type, "Content-Length": str(len(self.body))}
        return {**_ALWAYS, **own, **self.headers}


class Routes:
    """The paths over a board and its metrics; any thread may ask.

    Args:
        board: What the program knows.
        metrics: What it counted.
    """

    def __init__(self, board: StatusBoard, metrics: Metrics) -> None:
        self._board = board
        self._metrics = metrics
        self._routes: dict[str, Callable[[], Answer]] = {
            "/": self._page,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._scrape,
            "/api/status": self._status,
            "/api/plan": self._plan,
        }

    def knows(self, target: str) -> bool:
        """Whether something is served there."""
        return _path(target) in self._routes

    def answer(self, target: str) -> Answer:
        """The answer to a GET of this request target."""
        route = self._routes.get(_path(target))
        if route is None:
            return Answer(status=404, body=b"not found\n")
        return route()

    def _page(self) -> Answer:
        return Answer(body=page(status_json(self._board)), content_type=HTML)

    def _healthz(self) -> Answer:
        return _verdict("alive", "the loop is stuck", good=self._board.is_alive())

    def _readyz(self) -> Answer:
        role = "leader" if self._board.leadership.leads else "standby"
        return _verdict(role, "caches are not synced", good=self._board.is_ready())

    def _scrape(self) -> Answer:
        return Answer(body=self._metrics.text(), content_type=CONTENT_TYPE_LATEST)

    def _status(self) -> Answer:
        options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        body = orjson.dumps(status_json(self._board), option=options)
        return Answer(body=body, content_type=JSON)

    def _plan(self) -> Answer:
        plan = self._board.view.plan
        if plan is None:
            body = orjson.dumps({"error": "no plan yet"}, option=orjson.OPT_APPEND_NEWLINE)
            return Answer(status=503, body=body, content_type=JSON)
        return Answer(body=encode_plan(plan), content_type=JSON)


def _verdict(good_text: str, bad_text: str, *, good: bool) -> Answer:
    text = good_text if good else bad_text
    return Answer(status=200 if good else 503, body=f"{text}\n".encode())


def _path(target: str) -> str:
    """The path of a request target; a target that is none has no route."""
    try:
        return urlsplit(target).path
    except ValueError:
        return ""

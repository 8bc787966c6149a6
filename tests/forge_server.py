"""GitHub and GitLab as far as the second loop needs them: recorded shapes, real HTTP."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "f0rge-t0ken-for-tests"
PROJECT = "team/fleets"
OWNER = "fleet-bot"
"""Whose the token is."""
JOIN_SECONDS = 5.0


@dataclass
class Fault:
    """What the server does instead of answering, once each time it is listed."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    carry_out: bool = False
    """Do what was asked first."""
    cut: bool = False
    """Close the connection without a reply."""


@dataclass
class ForgeState:
    """What the server holds and saw."""

    statuses: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    pull_requests: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    hides_listing: bool = False
    """Lists no pull requests the first time, as a replica that lags."""
    hides_user: bool = False
    """Does not say whose the token is."""
    user_faults: int = 0
    """How often it fails instead of saying whose the token is."""
    requests: list[str] = field(default_factory=list)
    address: str = ""

    def opened(
        self, source: str, target: str, title: str, body: str, *, fork: bool = False
    ) -> dict[str, Any] | None:
        """A new pull request, None when an open one exists."""
        if any(
            (p["source"], p["target"], p["state"], p["fork"]) == (source, target, "open", fork)
            for p in self.pull_requests
        ):
            return None
        made = {
            "number": len(self.pull_requests) + 1,
            "source": source,
            "target": target,
            "title": title,
            "body": body,
            "state": "open",
            "fork": fork,
        }
        self.pull_requests.append(made)
        return made

    def listed(self, source: str, target: str) -> list[dict[str, Any]]:
        """Newest first, whatever became of them."""
        if self.hides_listing:
            self.hides_listing = False
            return []
        found = [p for p in self.pull_requests if (p["source"], p["target"]) == (source, target)]
        return found[::-1]

    def statuses_of(self, commit: str) -> list[dict[str, str]]:
        """Newest first."""
        return [body for sha, body in reversed(self.statuses) if sha == commit]

    def commented(self, number: int, body: str) -> dict[str, Any]:
        """A new comment."""
        made = {"id": 500 + len(self.comments), "number": number, "body": body}
        made |= {"user": {"login": OWNER, "type": "User"}, "author": {"username": OWNER}}
        self.comments.append(made)
        return made

    def comments_of(self, number: int, page: int) -> list[dict[str, Any]]:
        """A page of them."""
        found = [comment for comment in self.comments if comment["number"] == number]
        return found[100 * (page - 1) : 100 * page]

    def edited(self, comment_id: int, body: str) -> dict[str, Any]:
        """A comment with another text."""
        [comment] = [each for each in self.comments if each["id"] == comment_id]
        comment["body"] = body
        return comment


@contextmanager
def forge_server(kind: str) -> Iterator[ForgeState]:
    """Serve one project on loopback."""
    state = ForgeState()
    handler = type("Handler", (_HANDLERS[kind],), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join(JOIN_SECONDS)
        server.server_close()


def on_branch(forge_address: str) -> dict[str, str]:
    """What GitHub's jobs on the branch have in their environment."""
    return {
        "GITHUB_API_URL": forge_address,
        "GITHUB_REPOSITORY": PROJECT,
        "GITHUB_REF": "refs/heads/main",
        "RECONCILER_FORGE_TOKEN": TOKEN,
    }


class _Forge(BaseHTTPRequestHandler):
    state: ForgeState

    def do_GET(self) -> None:
        """Lists."""
        self._serve(None)

    def do_POST(self) -> None:
        """Statuses, pull requests and comments."""
        self._write()

    def do_PUT(self) -> None:
        """GitLab's way of changing."""
        self._write()

    def do_PATCH(self) -> None:
        """GitHub's way of changing."""
        self._write()

    def _write(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._serve(json.loads(self.rfile.read(length)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def _serve(self, body: dict[str, str] | None) -> None:
        self.state.requests.append(f"{self.command} {self.path}")
        fault = self.state.faults.pop(0) if self.state.faults else None
        answer = (401, {"message": "Bad credentials"})
        if self._authorised() and (fault is None or fault.carry_out):
            path = unquote(urlsplit(self.path).path)
            answer = self._user() if path == "/user" else self._answer(path, body)
        if fault is None:
            self._send(answer[0], answer[1], {})
        elif fault.cut:
            self.close_connection = True
        else:
            self._send(fault.status, fault.body, fault.headers)

    def _authorised(self) -> bool:
        raise AssertionError

    def _user(self) -> tuple[int, Any]:
        """Whose the token is, unless it is a workflow's."""
        if self.state.user_faults:
            self.state.user_faults -= 1
            return 502, {"message": "Bad gateway"}
        if self.state.hides_user:
            return 403, {"message": "Resource not accessible by integration"}
        return 200, {"login": OWNER, "username": OWNER, "type": "User"}

    def _answer(self, path: str, body: dict[str, str] | None) -> tuple[int, Any]:
        raise AssertionError

    def _comment(self, number: int, body: dict[str, str] | None) -> tuple[int, Any]:
        """Comments: `number` is that of the comment where one is changed."""
        if body is None:
            return 200, self.state.comments_of(number, int(self._query("page")))
        if self.command == "POST":
            return 201, self.state.commented(number, body["body"])
        return 200, self.state.edited(number, body["body"])

    def _query(self, name: str) -> str:
        return parse_qs(urlsplit(self.path).query).get(name, [""])[0]

    def _send(self, status: int, body: Any, headers: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _GitHub(_Forge):
    def _authorised(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _answer(self, path: str, body: dict[str, str] | None) -> tuple[int, Any]:
        root = f"/repos/{PROJECT}"
        status = re.fullmatch(rf"{root}/(?:statuses/([^/]+)|commits/([^/]+)/statuses)", path)
        if status is not None:
            return self._status(status[1] or status[2], body)
        comment = re.fullmatch(rf"{root}/issues/(comments/)?(\d+)(?:/comments)?", path)
        if comment is not None:
            return self._comment(int(comment[2]), body)
        if path != f"{root}/pulls":
            return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com"}
        if body is None:
            owner, _, source = self._query("head").partition(":")
            assert (owner, self._query("state")) == ("team", "all")
            listed = self.state.listed(source, self._query("base"))
            return 200, [_as_pull(p) for p in listed if not p["fork"]]
        made = self.state.opened(body["head"], body["base"], body["title"], body["body"])
        if made is None:
            said = f"A pull request already exists for team:{body['head']}."
            return 422, {"message": "Validation Failed", "errors": [{"message": said}]}
        return 201, _as_pull(made)

    def _status(self, commit: str, body: dict[str, str] | None) -> tuple[int, Any]:
        if body is None:
            return 200, self.state.statuses_of(commit)
        self.state.statuses.append((commit, body))
        return 201, {"id": 1, **body}


class _GitLab(_Forge):
    def _authorised(self) -> bool:
        return self.headers.get("PRIVATE-TOKEN") == TOKEN

    def _answer(self, path: str, body: dict[str, str] | None) -> tuple[int, Any]:
        root = f"/projects/{PROJECT}"
        status = re.fullmatch(
            rf"{root}/(?:statuses/([^/]+)|repository/commits/([^/]+)/statuses)", path
        )
        if status is not None:
            return self._status(status[1] or status[2], body)
        note = re.fullmatch(rf"{root}/merge_requests/(\d+)/notes(?:/(\d+))?", path)
        if note is not None:
            return self._comment(int(note[2] or note[1]), body)
        encoded = self.path.startswith("/projects/team%2Ffleets/")
        if path != f"{root}/merge_requests" or not encoded:
            return 404, {"error": "404 Not Found"}
        source, target = self._query("source_branch"), self._query("target_branch")
        if body is None:
            return 200, [_as_merge(p) for p in self.state.listed(source, target)]
        made = self.state.opened(
            body["source_branch"], body["target_branch"], body["title"], body["description"]
        )
        if made is None:
            said = ["Another open merge request already exists for this source branch: !1"]
            return 409, {"message": said}
        return 201, _as_merge(made)

    def _status(self, commit: str, body: dict[str, str] | None) -> tuple[int, Any]:
        if body is None:
            shown = self.state.statuses_of(commit)
            return 200, [{**each, "status": each["state"]} for each in shown]
        known = [b for sha, b in self.state.statuses if sha == commit and b["name"] == body["name"]]
        if known and known[-1]["state"] == body["state"]:
            said = f"Cannot transition status via :{body['state']} from :{body['state']}"
            return 400, {"message": {"state": [said]}}
        self.state.statuses.append((commit, body))
        return 201, {"id": 1, "status": body["state"], "name": body["name"]}


def _as_pull(made: dict[str, Any]) -> dict[str, Any]:
    url = f"https://github.example/{PROJECT}/pull/{made['number']}"
    merged = made["state"] == "merged"
    return {
        "number": made["number"],
        "html_url": url,
        "state": "closed" if merged else made["state"],
        "merged_at": "2026-11-01T10:00:00Z" if merged else None,
    }


def _as_merge(made: dict[str, Any]) -> dict[str, Any]:
    url = f"https://gitlab.example/{PROJECT}/-/merge_requests/{made['number']}"
    state = "opened" if made["state"] == "open" else made["state"]
    return {
        "id": 1000 + made["number"],
        "iid": made["number"],
        "web_url": url,
        "state": state,
        "source_project_id": 666 if made["fork"] else 1,
        "target_project_id": 1,
    }


_HANDLERS: dict[str, type[_Forge]] = {"github": _GitHub, "gitlab": _GitLab}

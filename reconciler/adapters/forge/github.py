"""GitHub: commit statuses and pull requests.

Source: GitHub REST reference, "Commit statuses" and "Pulls", version 2022-11-28, read 2026-11.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from reconciler.adapters.forge.comments import marked, with_marker
from reconciler.adapters.forge.requests import found_or_opened, read_request
from reconciler.adapters.forge.rest import RestClient
from reconciler.adapters.forge.settings import ForgeSettings
from reconciler.model.errors import Unavailable
from reconciler.ports.forge import CommitStatus, PullRequest, StatusState
from reconciler.ports.repository import CommitId

DESCRIPTION_MAX = 140
_STATES: Final[dict[str, StatusState]] = {
    "pending": "pending",
    "success": "success",
    "failure": "failure",
    "error": "error",
}
COMMENT_MAX = 65_536


class GitHub:
    """The Forge port."""

    def __init__(self, settings: ForgeSettings, client: RestClient) -> None:
        self._settings = settings
        self._client = client
        self._owner = settings.repository.partition("/")[0]
        self._root = f"/repos/{quote(settings.repository)}"

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Publish a status on a commit; GitHub keeps the newest per context."""
        body = {
            "state": status.state,
            "context": status.context,
            "description": status.description[:DESCRIPTION_MAX],
        }
        self._client.post(f"{self._root}/statuses/{commit}", body, self._headers())

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """Return the newest status of each context; GitHub lists the newest first."""
        listed = self._client.pages(f"{self._root}/commits/{commit}/statuses", {}, self._headers())
        found: dict[str, StatusState] = {}
        for each in listed:
            state_name = each.get("state") if isinstance(each, Mapping) else None
            state = _STATES.get(state_name) if isinstance(state_name, str) else None
            if state is not None:
                found.setdefault(str(each.get("context", "")), state)
        return found

    def pull_request(self, branch: str, base: str) -> PullRequest | None:
        """Return the newest pull request from `branch` into `base` that is not merged."""
        query = {
            "head": f"{self._owner}:{branch}",
            "base": base,
            "state": "all",
            "sort": "created",
            "direction": "desc",
            "per_page": "1",
        }
        listed = self._client.get(f"{self._root}/pulls", query, self._headers())
        if not isinstance(listed, list):
            raise Unavailable("GitHub GET pulls", "answered with something that is not a list")
        return None if not listed or _was_merged(listed[0]) else _pull_request(listed[0])

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Return the pull request from `branch` into `base`: the existing one, or a new one."""
        wanted = {"title": title, "head": branch, "base": base, "body": body}
        return found_or_opened(
            lambda: self.pull_request(branch, base),
            lambda: _pull_request(
                self._client.post(f"{self._root}/pulls", wanted, self._headers())
            ),
        )

    def comment(self, number: int, marker: str, body: str) -> None:
        """Write a comment on a pull request, in place of an earlier one with this marker."""
        root = f"{self._root}/issues"
        text = marked(marker, body, COMMENT_MAX)
        listed = self._client.pages(f"{root}/{number}/comments", {}, self._headers())
        shown = with_marker(listed, marker, self._is_foreign)
        if shown is None:
            self._client.post(f"{root}/{number}/comments", {"body": text}, self._headers())
        else:
            path = f"{root}/comments/{shown}"
            self._client.change("PATCH", path, {"body": text}, self._headers())

    def _is_foreign(self, comment: Mapping[str, Any]) -> bool:
        """Return whether somebody else wrote it; a workflow's token cannot ask for its own name."""
        user = comment.get("user")
        if not isinstance(user, Mapping) or "login" not in user:
            return True
        own = self._client.who("/user", "login", self._headers())
        return bool(user["login"] != own if own else user.get("type") != "Bot")

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {self._settings.read_token()}",
        }


def _was_merged(answer: Any) -> bool:
    """Return whether a listed pull request was merged; GitHub calls that closed as well."""
    return isinstance(answer, Mapping) and bool(answer.get("merged_at"))


def _pull_request(answer: Any) -> PullRequest:
    request = read_request(answer, "number", "html_url")
    if request is None:
        raise Unavailable("GitHub pulls", "answered no pull request")
    return request

"""GitLab: commit statuses and merge requests.

Source: GitLab REST reference, "Commits API" (statuses) and "Merge requests API", read 2026-11.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from reconciler.adapters.forge.comments import marked, with_marker
from reconciler.adapters.forge.requests import found_or_opened, read_request
from reconciler.adapters.forge.rest import RestClient
from reconciler.adapters.forge.settings import ForgeSettings
from reconciler.model.errors import Refused, Unavailable
from reconciler.ports.forge import CommitStatus, PullRequest, StatusState
from reconciler.ports.repository import CommitId

DESCRIPTION_MAX = 255
COMMENT_MAX = 1_000_000
_STATES: Final[dict[StatusState, str]] = {
    "pending": "pending",
    "success": "success",
    "failure": "failed",
    "error": "failed",
}
_READ_STATES: Final[dict[str, StatusState]] = {
    "success": "success",
    "failed": "failure",
    "canceled": "error",
    "skipped": "error",
}
"""Every other state of GitLab means that the status is not final."""
_NOTHING: Final = object()
"""What no answer of a server can be."""


class GitLab:
    """The Forge port."""

    def __init__(self, settings: ForgeSettings, client: RestClient) -> None:
        self._settings = settings
        self._client = client
        self._root = f"/projects/{quote(settings.repository, safe='')}"

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Publish a status on a commit, as a job of an external pipeline."""
        body = {
            "state": _STATES[status.state],
            "name": status.context,
            "description": status.description[:DESCRIPTION_MAX],
        }
        try:
            self._client.post(f"{self._root}/statuses/{commit}", body, self._headers())
        except Refused as error:
            # GitLab refuses a state that the status already has.
            if "cannot transition status" not in error.what.lower():
                raise

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """Return the newest status of each context; GitLab lists only the newest by default."""
        path = f"{self._root}/repository/commits/{commit}/statuses"
        found: dict[str, StatusState] = {}
        for page in self._client.pages(path, {}, self._headers()):
            if isinstance(page, Mapping):
                state = _READ_STATES.get(str(page.get("status")), "pending")
                found.setdefault(str(page.get("name", "")), state)
        return found

    def pull_request(self, branch: str, base: str) -> PullRequest | None:
        """Return the newest request that is not merged, of this project's own branch.

        GitLab lists requests of forks as well: a branch there may have any name, and be anybody's.
        """
        query = {
            "source_branch": branch,
            "target_branch": base,
            "state": "all",
            "order_by": "created_at",
            "sort": "desc",
        }
        listed = self._client.pages(f"{self._root}/merge_requests", query, self._headers())
        newest = next((each for each in listed if not _is_of_a_fork(each)), _NOTHING)
        return None if newest is _NOTHING or _was_merged(newest) else _merge_request(newest)

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Return the merge request from `branch` into `base`: the existing one, or a new one."""
        wanted = {
            "title": title,
            "source_branch": branch,
            "target_branch": base,
            "description": body,
        }
        return found_or_opened(
            lambda: self.pull_request(branch, base),
            lambda: _merge_request(
                self._client.post(f"{self._root}/merge_requests", wanted, self._headers())
            ),
        )

    def comment(self, number: int, marker: str, body: str) -> None:
        """Write a comment on a merge request, in place of an earlier one with this marker."""
        root = f"{self._root}/merge_requests/{number}/notes"
        text = marked(marker, body, COMMENT_MAX)
        listed = self._client.pages(root, {}, self._headers())
        shown = with_marker(listed, marker, self._is_foreign)
        if shown is None:
            self._client.post(root, {"body": text}, self._headers())
        else:
            self._client.change("PUT", f"{root}/{shown}", {"body": text}, self._headers())

    def _is_foreign(self, note: Mapping[str, Any]) -> bool:
        """Return whether somebody else wrote it, or the author is not known."""
        author = note.get("author")
        if not isinstance(author, Mapping) or "username" not in author:
            return True
        return bool(author["username"] != self._client.who("/user", "username", self._headers()))

    def _headers(self) -> dict[str, str]:
        return {"PRIVATE-TOKEN": self._settings.read_token()}


def _is_of_a_fork(answer: Any) -> bool:
    """Return whether the branch is in another project, which may be gone by now."""
    if not isinstance(answer, Mapping):
        return False
    return bool(answer.get("source_project_id") != answer.get("target_project_id"))


def _was_merged(answer: Any) -> bool:
    return isinstance(answer, Mapping) and answer.get("state") == "merged"


def _merge_request(answer: Any) -> PullRequest:
    request = read_request(answer, "iid", "web_url")
    if request is None:
        raise Unavailable("GitLab merge_requests", "answered no merge request")
    return request

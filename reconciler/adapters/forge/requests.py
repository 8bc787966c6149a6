"""Pull requests: reads them from answers, and opens each only once."""

from collections.abc import Callable, Mapping

from reconciler.adapters.forge.rest import Json
from reconciler.model.errors import Conflict
from reconciler.ports.forge import PullRequest


def found_or_opened(
    find: Callable[[], PullRequest | None], open_new: Callable[[], PullRequest]
) -> PullRequest:
    """Return the existing one, or a new one.

    Args:
        find: Finds the newest that was not merged: a review that ended well is not waited for.
        open_new: Opens it; Conflict when somebody else has opened it, or there is nothing to merge.

    Raises:
        PortError: As the two raise it.
    """
    pull_request = find()
    if pull_request is not None:
        return pull_request
    try:
        return open_new()
    except Conflict:
        pull_request = find()
        if pull_request is None:
            raise
        return pull_request


def read_request(answer: Json, number_key: str, url_key: str) -> PullRequest | None:
    """Return the pull request in an answer; None when it has none."""
    if not isinstance(answer, Mapping):
        return None
    number, url = answer.get(number_key), answer.get(url_key)
    if type(number) is not int or number < 1 or not isinstance(url, str):
        return None
    return PullRequest(number=number, url=url, closed=answer.get("state") == "closed")

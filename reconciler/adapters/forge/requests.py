"""Opens a pull request once, also when another process opens one at the same moment."""

from collections.abc import Callable

from reconciler.model.errors import Conflict
from reconciler.ports.forge import PullRequest


def found_or_opened(
    find: Callable[[], PullRequest | None], open_new: Callable[[], PullRequest]
) -> PullRequest:
    """The one that exists, or a new one.

    Args:
        find: Looks for it.
        open_new: Opens it; Conflict when somebody was faster, or there is nothing to merge.

    Raises:
        PortError: As the two raise it.
    """
    found = find()
    if found is not None:
        return found
    try:
        return open_new()
    except Conflict:
        found = find()
        if found is None:
            raise
        return found

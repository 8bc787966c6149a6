"""Pages of a list whose items may come and go between two calls."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from typing import TypeVar

from reconciler.sandbox.aws.errors import Ec2Fault

Item = TypeVar("Item")


def page(
    items: Sequence[Item],
    *,
    position: Callable[[Item], int],
    limit: int | None,
    token: str | None,
) -> tuple[list[Item], str | None]:
    """Return one page and the token of the next; None when this is the last.

    Args:
        items: All that match now, by rising `position`.
        position: A number that an item keeps for life: the token names the last one shown.
        limit: Items per page; None for all.
        token: What the page before this one gave; None for the first page.

    Raises:
        Ec2Fault: The token is not one of ours.
    """
    after = -1 if token is None else _decode(token)
    rest = [item for item in items if position(item) > after]
    if limit is None or len(rest) <= limit:
        return rest, None
    shown = rest[:limit]
    return shown, _encode(position(shown[-1]))


def _encode(position: int) -> str:
    return urlsafe_b64encode(f"after:{position}".encode()).decode()


def _decode(token: str) -> int:
    try:
        word, _, number = urlsafe_b64decode(token.encode()).decode().partition(":")
        if word == "after":
            return int(number)
    except (Base64Error, UnicodeDecodeError, ValueError):
        pass
    raise Ec2Fault("InvalidNextToken", f"The token '{token}' is invalid")

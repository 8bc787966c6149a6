"""Full lists, page by page."""

from collections.abc import Callable

from msgspec import Raw

from reconciler.adapters.kubernetes.errors import Gone
from reconciler.adapters.kubernetes.kinds import Kind
from reconciler.adapters.kubernetes.transport import Transport
from reconciler.model.errors import Unavailable
from reconciler.records.kubernetes import decode_page

PAGE_OBJECTS = 1000
EXPIRED_MAX = 3
"""How often a list may outlive what the server keeps of it."""


def selection(kind: Kind) -> dict[str, str]:
    """What of a kind is asked for."""
    return {"fieldSelector": kind.field_selector} if kind.field_selector else {}


def read_list(
    transport: Transport,
    kind: Kind,
    begin: Callable[[], None],
    take: Callable[[list[Raw]], None],
    page_objects: int = PAGE_OBJECTS,
) -> str:
    """Take a full list, page by page; in one piece when pages come too late again and again.

    One piece of 30,000 pods is 250 MB to hold.

    Args:
        transport: How to reach the server.
        kind: What to list.
        begin: Called right before the first page is asked for, also when it has to be once more:
            what was taken before is void then.
        take: Called with each page.
        page_objects: How many at once.

    Returns:
        The version of the list, from where to watch on.

    Raises:
        PortError: It could not be taken.
    """
    first = {"limit": str(page_objects), **selection(kind)}
    query, expired = dict(first), 0
    begin()
    while True:
        try:
            reply = transport.expect("GET", kind.path, query=query)
        except Gone:
            if "continue" not in query:
                raise
            expired += 1
            query = dict(first) if expired < EXPIRED_MAX else selection(kind)
            begin()
            continue
        try:
            page = decode_page(reply.body)
        except (ValueError, RecursionError) as error:
            raise Unavailable(kind.path, f"the list cannot be read: {error}") from error
        if not page.resource_version:  # a proxy's answer would pass for an empty cluster
            raise Unavailable(kind.path, "answered no list of Kubernetes")
        take(page.items)
        if not page.continue_token:
            return page.resource_version
        query["continue"] = page.continue_token

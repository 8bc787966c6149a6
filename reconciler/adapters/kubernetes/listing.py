"""Reads full lists, page by page."""

from collections.abc import Callable

from msgspec import Raw

from reconciler.adapters.kubernetes.errors import Gone, TooLarge
from reconciler.adapters.kubernetes.kinds import Kind
from reconciler.adapters.kubernetes.transport import Reply, Transport
from reconciler.model.errors import Unavailable
from reconciler.records.kubernetes import Page, decode_page

PAGE_OBJECTS = 1000
PAGE_BYTES = 32 * 2**20
"""A thousand usual pods have half of it; a thousand of the largest that the API server admits would
have 1.4 GB, more than the program may take."""
EXPIRED_MAX = 3
"""How often a list may take longer than the server keeps its version."""


def selection(kind: Kind) -> dict[str, str]:
    """Return the query that selects the objects of a kind."""
    return {"fieldSelector": kind.field_selector} if kind.field_selector else {}


def page_of(reply: Reply, kind: str) -> Page:
    """Return the page of a list that an answer holds.

    Args:
        reply: An answer with status 2xx.
        kind: Of the objects that were asked for: `Pod`.

    Raises:
        Unavailable: It is no list of this kind: something answered in the API server's place. It
            could look like an empty cluster, or like a node without pods.
    """
    try:
        page = decode_page(reply.body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(reply.where, f"the list cannot be read: {error}"[:300]) from error
    if not page.resource_version or page.kind not in {"", f"{kind}List"}:
        raise Unavailable(reply.where, "answered no list of Kubernetes")
    return page


def read_list(
    transport: Transport,
    kind: Kind,
    begin: Callable[[], None],
    take: Callable[[list[Raw]], None],
    page_objects: int = PAGE_OBJECTS,
    page_bytes: int = PAGE_BYTES,
) -> str:
    """Read a full list by pages; in one piece when the pages expire repeatedly.

    A list of 30,000 pods in one piece takes 250 MB of memory. Where objects are large the pages
    have fewer of them: an answer that is too long is broken off, and asked for again in half.

    Args:
        transport: How to reach the server.
        kind: What to list.
        begin: Called right before the first page is requested, and again after a restart: earlier
            pages are then void.
        take: Called with each page.
        page_objects: The most objects per page.
        page_bytes: The most bytes per page.

    Returns:
        The version of the list, from which a watch can start.

    Raises:
        PortError: The list could not be read.
    """
    first = {"limit": str(page_objects), **selection(kind)}
    query, expired = dict(first), 0
    begin()
    while True:
        bytes_max = page_bytes if "limit" in query else None
        try:
            reply = transport.expect("GET", kind.path, query=query, bytes_max=bytes_max)
        except TooLarge:
            if query["limit"] == "1":
                raise
            query["limit"] = str(int(query["limit"]) // 2)
            continue
        except Gone:
            if "continue" not in query:
                raise
            expired += 1
            query = dict(first) if expired < EXPIRED_MAX else selection(kind)
            begin()
            continue
        page = page_of(reply, kind.name)
        take(page.items)
        if not page.continue_token:
            return page.resource_version
        query["continue"] = page.continue_token
        if len(reply.body) < page_bytes // 2 and "limit" in query:
            query["limit"] = str(min(page_objects, 2 * int(query["limit"])))

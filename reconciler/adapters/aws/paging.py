"""Reads lists of AWS in chunks and page by page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from reconciler.adapters.aws.errors import translated

T = TypeVar("T")


def entries(
    client: Any,
    operation: str,
    key: str,
    arguments: Mapping[str, Any],
    between_pages: Callable[[], object] = lambda: None,
) -> list[dict[str, Any]]:
    """Return the entries of all pages of an answer.

    Args:
        client: A boto3 client.
        operation: The call.
        key: The key of the entries in a page.
        arguments: Arguments of the call.
        between_pages: Called before each further page is requested.

    Raises:
        PortError: AWS did not answer, or refused.
    """
    found: list[dict[str, Any]] = []
    with translated(operation, changing=False):
        for page in client.get_paginator(operation).paginate(**arguments):
            found += listed(page, key)
            if page.get("NextToken"):
                between_pages()
    return found


def listed(page: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the entries of a page, to be called where its errors are translated.

    An empty list may be left out, the request's id is not. A well-formed page of a proxy, such as
    one to sign in, has neither: taken for an empty list it would make everything look gone.

    Raises:
        ValueError: AWS did not write the page.
    """
    if key not in page and not page.get("ResponseMetadata", {}).get("RequestId"):
        raise ValueError(f"no list of {key} and no request id")
    found: list[dict[str, Any]] = page.get(key, [])
    return found


def chunks(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the values in lists of at most `size`."""
    for start in range(0, len(values), size):
        yield list(values[start : start + size])

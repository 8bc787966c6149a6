"""Objects straight into etcd: tens of thousands in a minute, and many at one moment.

The API server reads JSON from etcd as well as its own protobuf, and its watches tell of every
change there, whoever wrote it. Creating 30,000 pods through the API would take half an hour.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson

Object = tuple[str, Mapping[str, Any] | bytes]
"""Key below /registry, and the body with apiVersion and kind, or encoded."""
_OPERATIONS_MAX = 100
"""etcd takes at most 128 in one transaction."""
_BYTES_MAX = 900_000
"""And requests of 1.5 MiB."""
_TIMEOUT_SECONDS = 60


class Etcd:
    """etcd's own JSON gateway; one connection, not for several threads.

    Args:
        url: Where it listens for clients.
    """

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def seed(self, objects: Iterable[Object]) -> None:
        """Create objects, many in a transaction; only while no API server is there.

        They share a revision then: a watch that is begun again in the middle of it would never
        hear of the rest. The API server itself writes one object in a transaction.
        """
        for transaction in _transactions(_puts(objects), _OPERATIONS_MAX):
            self._send(transaction)

    def put(self, objects: Iterable[Object]) -> None:
        """Create or replace objects, each in a revision of its own."""
        for transaction in _transactions(_puts(objects), 1):
            self._send(transaction)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects, each in a revision of its own."""
        operations = ({"requestDeleteRange": {"key": _key(key)}} for key in keys)
        for transaction in _transactions(operations, 1):
            self._send(transaction)

    def _send(self, transaction: bytes) -> None:
        self._connection.request("POST", "/v3/kv/txn", transaction)
        with self._connection.getresponse() as answer:
            text = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"etcd: {answer.status} {text[:300]!r}")


def _puts(objects: Iterable[Object]) -> Iterator[dict[str, Any]]:
    return (_put(key, body) for key, body in objects)


def _transactions(operations: Iterable[dict[str, Any]], most: int) -> Iterator[bytes]:
    """Requests that carry out so many operations each, all of them at one moment."""
    for chunk in _chunks(operations, most):
        yield orjson.dumps({"success": chunk})


def _key(key: str) -> str:
    return base64.b64encode(f"/registry/{key}".encode()).decode()


def _put(key: str, body: Mapping[str, Any] | bytes) -> dict[str, Any]:
    encoded = body if isinstance(body, bytes) else orjson.dumps(body)
    return {"requestPut": {"key": _key(key), "value": base64.b64encode(encoded).decode()}}


def _chunks(operations: Iterable[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    size = 0
    for operation in operations:
        length = len(operation.get("requestPut", {}).get("value", ""))
        if chunk and (len(chunk) == most or size + length > _BYTES_MAX):
            yield chunk
            chunk, size = [], 0
        chunk.append(operation)
        size += length
    if chunk:
        yield chunk

"""Objects straight into etcd: tens of thousands in a minute, and many at one moment.

The API server reads JSON from etcd as well as its own protobuf, and its watches tell of every
change there, whoever wrote it. Creating 30,000 pods through the API would take half an hour.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Transaction:
    """A request that is ready to be sent."""

    objects: int
    """How many it creates, replaces or removes, all at one moment."""
    body: bytes


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

    def put(self, objects: Iterable[Object]) -> None:
        """Create or replace objects, in as few transactions as etcd allows."""
        for each in put_requests(objects):
            self.send(each)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        operations = ({"requestDeleteRange": {"key": _key(key)}} for key in keys)
        for each in _transactions(operations):
            self.send(each)

    def send(self, transaction: Transaction) -> None:
        """Carry one transaction out."""
        self._connection.request("POST", "/v3/kv/txn", transaction.body)
        with self._connection.getresponse() as answer:
            text = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"etcd: {answer.status} {text[:300]!r}")


def put_requests(objects: Iterable[Object]) -> Iterator[Transaction]:
    """What creates or replaces objects, encoded: sending it takes no time for that."""
    return _transactions(_put(key, body) for key, body in objects)


def _transactions(operations: Iterable[dict[str, Any]]) -> Iterator[Transaction]:
    for chunk in _chunks(operations):
        yield Transaction(len(chunk), orjson.dumps({"success": chunk}))


def _key(key: str) -> str:
    return base64.b64encode(f"/registry/{key}".encode()).decode()


def _put(key: str, body: Mapping[str, Any] | bytes) -> dict[str, Any]:
    encoded = body if isinstance(body, bytes) else orjson.dumps(body)
    return {"requestPut": {"key": _key(key), "value": base64.b64encode(encoded).decode()}}


def _chunks(operations: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    size = 0
    for operation in operations:
        length = len(operation.get("requestPut", {}).get("value", ""))
        if chunk and (len(chunk) == _OPERATIONS_MAX or size + length > _BYTES_MAX):
            yield chunk
            chunk, size = [], 0
        chunk.append(operation)
        size += length
    if chunk:
        yield chunk

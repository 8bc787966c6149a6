"""A client of the status server of a running program: asks for its status and explanations."""

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

from reconciler.machine.deadline import within
from reconciler.model.errors import InputError, Unavailable, UsageError
from reconciler.web.address import web_address

TIMEOUT_SECONDS = 10.0
"""Limit of the time until the next part of an answer."""
EXPLAIN_TIMEOUT_SECONDS = 60.0
"""The same for an explanation, which needs another plan."""
WHOLE_ANSWER_SECONDS = 10.0
"""Added for the rest of an answer, however slowly its parts come."""
BODY_MAX_BYTES = 64 * 1024**2
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "127.0.0.1"}  # noqa: S104 - not bound here
"""A server on `::` answers on IPv4 too, and on that alone where there is no IPv6."""


def ask_status(listen: str, token: bytes | None = None) -> dict[str, Any]:
    """Return the answer of `/api/status`.

    Args:
        listen: `HOST:PORT` that the program listens on; every address stands for this machine.
        token: The bearer token that it asks for; None: none.

    Raises:
        UsageError: `listen` is not an address.
        Unavailable: Nothing answers there in time.
        InputError: What answers there is not a reconciler.
    """
    status, body = _get(listen, "/api/status", token, TIMEOUT_SECONDS)
    document = _read(listen, status, body)
    if status != 200 or not document.keys() >= {"cycle", "verdict"}:
        raise _no_reconciler(listen, status)
    return document


def ask_explanations(
    listen: str,
    asked: Mapping[str, Sequence[str]],
    cluster: str = "",
    token: bytes | None = None,
) -> dict[str, Any]:
    """Return the answer of `/api/explain`, from the running loop's last plan.

    Args:
        listen: `HOST:PORT` that the program listens on.
        asked: Names by `pod`, `node` and `fleet`.
        cluster: The cluster that the program must belong to; empty: any.
        token: The bearer token that it asks for; None: none.

    Raises:
        UsageError: There is no such pod, node or fleet.
        Unavailable: Nothing answers there in time, or it has no plan, or is busy.
        InputError: What answers there is not a reconciler, or one of another cluster.
    """
    pairs = [(kind, name) for kind, names in asked.items() for name in names]
    query = urlencode([*pairs, *([("cluster", cluster)] if cluster else [])])
    status, body = _get(listen, f"/api/explain?{query}", token, EXPLAIN_TIMEOUT_SECONDS)
    document = _read(listen, status, body)
    if status == 200 and "pods" in document:
        return document
    if "what" not in document:
        raise _no_reconciler(listen, status)
    where, what, hint = (str(document.get(key, "")) for key in ("where", "what", "hint"))
    if status == 404:
        raise UsageError(where, what, hint)
    if status == 409:
        raise InputError(listen, what, hint)
    raise Unavailable(listen, what, hint)


def _get(listen: str, path: str, token: bytes | None, timeout_seconds: float) -> tuple[int, bytes]:
    host, port = web_address(listen, "--status-url")
    connection = HTTPConnection(_ANYWHERE.get(host, host), port, timeout=timeout_seconds)

    def ask() -> tuple[int, bytes]:
        try:
            headers = {} if token is None else {"Authorization": b"Bearer " + token}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(BODY_MAX_BYTES + 1)
        finally:  # here, since in another thread it would wait for the read to end
            connection.close()

    try:
        status, body = within(timeout_seconds + WHOLE_ANSWER_SECONDS, ask)
    except (OSError, HTTPException) as error:
        what = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unavailable(
            listen,
            f"nothing answers: {what}",
            "is `reconciler run` running? --status-url says where",
        ) from error
    if len(body) > BODY_MAX_BYTES:
        raise InputError(listen, f"answered with more than {BODY_MAX_BYTES // 1024**2} MiB")
    return status, body


def _no_reconciler(listen: str, status: int) -> InputError:
    return InputError(listen, f"is not a reconciler's status endpoint (HTTP {status})")


def _read(listen: str, status: int, body: bytes) -> dict[str, Any]:
    if status == 401:
        hint = "--listen-token-file names a file with it"
        raise InputError(listen, "asks for another bearer token", hint)
    if status == 421:
        hint = "ask by address, or add the name to listen_hosts in the config"
        raise InputError(listen, "does not answer to this host name", hint)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _no_reconciler(listen, status)
    return document

"""Asks a running program for its status, over HTTP."""

import json
from http.client import HTTPConnection, HTTPException
from typing import Any

from reconciler.model.errors import InputError, Unavailable
from reconciler.web.address import host_and_port

TIMEOUT_SECONDS = 10.0
BODY_MAX_BYTES = 64 * 1024**2
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound here


def ask_status(listen: str, token: bytes | None = None) -> dict[str, Any]:
    """The answer of `/api/status`.

    Args:
        listen: `HOST:PORT` that the program listens on; every address stands for this machine.
        token: The bearer token that it asks for; None: none.

    Raises:
        UsageError: `listen` is no address.
        Unavailable: Nothing answers there in time.
        InputError: What answers there is no reconciler.
    """
    host, port = host_and_port(listen)
    connection = HTTPConnection(_ANYWHERE.get(host, host), port, timeout=TIMEOUT_SECONDS)
    try:
        headers = {} if token is None else {"Authorization": b"Bearer " + token}
        connection.request("GET", "/api/status", headers=headers)
        answer = connection.getresponse()
        body = answer.read(BODY_MAX_BYTES)
    except (OSError, HTTPException) as error:
        what = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unavailable(
            listen, f"nothing answers: {what}", "is `reconciler run` running? --listen says where"
        ) from error
    finally:
        connection.close()
    return _read(listen, answer.status, body)


def _read(listen: str, status: int, body: bytes) -> dict[str, Any]:
    if status == 401:
        hint = "--listen-token-file names a file with it"
        raise InputError(listen, "asks for another bearer token", hint)
    if status == 421:
        hint = "ask by address, or add the name to listen_hosts in the config"
        raise InputError(listen, "does not answer to this host name", hint)
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if status != 200 or not isinstance(document, dict) or "cycle" not in document:
        raise InputError(listen, f"is no reconciler's status endpoint (HTTP {status})")
    return document

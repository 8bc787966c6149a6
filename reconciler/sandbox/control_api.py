"""A client of the control APIs of the sandbox's servers.

They are under a separate path of the servers, and let tests and the sandbox itself read counters
and inject faults.
"""

import json
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

from reconciler.model.errors import InputError, Unavailable, why_not_reached

PREFIX = "/_sandbox/"
"""Path of the control APIs."""
CLIENT = "sandbox-joiner"
"""In the User-Agent of the sandbox's own parts, to which no fault applies."""
TIMEOUT_SECONDS = 90.0
"""Longer than the longest wait that a control API allows."""


class ControlApi:
    """One control API.

    Args:
        name: Its name in errors: its URL.
        connect: Creates a connection to it.
        headers: Sent along with everything.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], HTTPConnection],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._connect = connect
        self._headers = dict(headers or {})

    def ask(
        self,
        method: str,
        what: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Send one request on a connection of its own.

        Raises:
            Unavailable: No server answers there.
            InputError: The API refuses what was asked.
        """
        connection = self._connect()
        try:
            path = PREFIX + what + ("?" + urlencode(query) if query else "")
            text = json.dumps(body) if body else None
            connection.request(method, path, body=text, headers=self._headers)
            answer = connection.getresponse()
            document: Mapping[str, Any] = json.loads(answer.read())
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            what = f"nothing answers: {why_not_reached(error)}"
            raise Unavailable(self._name, what, "is `reconciler sandbox up` running?") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise InputError(self._name, str(document.get("error")))
        return document


def read_body(body: bytes) -> Mapping[str, Any]:
    """Return a request's JSON object; empty when there is none.

    Raises:
        InputError: It is something else.
    """
    if not body:
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("body", f"is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InputError("body", "is not a JSON object")
    return document

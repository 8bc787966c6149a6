"""The control API from another process: what `control.Control` offers, over HTTP."""

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from reconciler.model.errors import InputError, Unavailable

PREFIX = "/_sandbox/"
"""Path of the control API; it stands here, so that a client need not load the emulator."""
_TIMEOUT_SECONDS = 90.0
"""Longer than the longest wait that the control API allows."""


class ControlClient:
    """Calls the control API of the emulated AWS at `url`.

    Every method raises `Unavailable` when nobody answers there and `InputError` when the API
    refuses what was asked.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._netloc = urlsplit(url).netloc

    def limit_capacity(self, **limit: str | int | None) -> None:
        """Put a capacity limit in force: the fields of `faults.CapacityLimit`."""
        self._ask("POST", "capacity", body=limit)

    def lift_capacity(self, **pool: str) -> None:
        """Take away the limit on `instance_type`, `zone`, `lifecycle`; without any, all limits."""
        self._ask("DELETE", "capacity", body=pool)

    def terminate(self, instance_ids: Sequence[str], reason: str = "user") -> Sequence[str]:
        """End fleet instances from outside; returns those that were there.

        Args:
            instance_ids: Of any Region.
            reason: `user`, `spot-interruption` or `failure`.
        """
        body = {"instance_ids": list(instance_ids), "reason": reason}
        return list(self._ask("POST", "terminate", body=body)["terminated"])

    def calls(self, **wanted: str) -> Sequence[Mapping[str, Any]]:
        """The AWS calls so far that match `service`, `action`, `mutating` (`true`, `false`)."""
        return list(self._ask("GET", "calls", query=wanted)["calls"])

    def call_counts(self) -> Mapping[str, int]:
        """AWS calls so far per `service:action`."""
        return dict(self._ask("GET", "calls", query={"service": "none"})["counts"])

    def forget_calls(self) -> None:
        """Start the log of calls afresh."""
        self._ask("DELETE", "calls")

    def enforce_iam(self, *, enforced: bool) -> None:
        """Let AWS check signatures and IAM policies, which prove what a policy suffices for."""
        self._ask("POST", "iam", body={"enforced": enforced})

    def instances(
        self, *, since: int = -1, wait_seconds: float = 0.0
    ) -> tuple[int, Sequence[Mapping[str, Any]]]:
        """All fleet instances, once something changed after change number `since`.

        Args:
            since: The number an earlier call returned; -1 does not wait.
            wait_seconds: At most 60.
        """
        query = {"since": str(since), "wait_seconds": str(wait_seconds)}
        answer = self._ask("GET", "instances", query=query)
        return int(answer["change"]), list(answer["instances"])

    def _ask(
        self,
        method: str,
        what: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        connection = HTTPConnection(self._netloc, timeout=_TIMEOUT_SECONDS)
        try:
            path = PREFIX + what + ("?" + urlencode(query) if query else "")
            connection.request(method, path, body=json.dumps(body) if body else None)
            answer = connection.getresponse()
            document: Mapping[str, Any] = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            raise Unavailable(self._url, str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if answer.status != 200:
            raise InputError(self._url, str(document.get("error")))
        return document

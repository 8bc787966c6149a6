"""Reads the program's own node from the API server, and patches it with a precondition.

It uses the pod's own ServiceAccount token. The official client would cost 60 MiB and half a second.
"""

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    PortError,
    Throttled,
    Unavailable,
    UsageError,
)
from reconciler.node_watch.decision import NodeChange, OwnNode
from reconciler.node_watch.http_client import Answer, HttpClient

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TIMEOUT_SECONDS: Final = 5.0
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""A node with its list of images; etcd stores no object over 1.5 MiB."""
TOKEN_BYTES_MAX: Final = 64 * 1024
PAUSE_MAX_SECONDS: Final = 60.0
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_TOKEN: Final = re.compile(rb"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPlace:
    """Where the API server is, and the credentials."""

    url: str
    account: Path
    """Folder with `token` and `ca.crt`. Both are read for each connection: they rotate."""


class OwnNodeClient:
    """Reads and patches one node.

    Args:
        place: The API server.
        name: Name of the node.
    """

    def __init__(self, place: ApiPlace, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError("--node-name", f"{name!r} is not a valid name of a node")
        host, port = _host_and_port(place.url)
        self._place = place
        self._path = f"/api/v1/nodes/{name}"
        self._client = HttpClient(
            lambda: HTTPSConnection(
                host, port, timeout=TIMEOUT_SECONDS, context=_context(place.account)
            ),
            body_bytes_max=BODY_BYTES_MAX,
            keep_alive=False,
        )

    def read(self) -> OwnNode:
        """Return the node as it is.

        Raises:
            PortError: The API server refused, or did not answer.
        """
        answer = self._ask("GET")
        try:
            return _decoded(json.loads(answer.body))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise Unavailable(
                f"GET {self._path}", "answered with something that is not a Node"
            ) from error

    def write(self, node: OwnNode, change: NodeChange) -> None:
        """Patch the node, if it has not changed since it was read.

        Raises:
            Conflict: The node has changed since; nothing was written.
            PortError: The API server refused, or did not answer.
        """
        body: dict[str, Any] = {
            "metadata": {
                "resourceVersion": node.resource_version,
                "annotations": dict(change.annotations),
            }
        }
        if change.taints is not None:
            body["spec"] = {"taints": [dict(taint) for taint in change.taints]}
        self._ask("PATCH", json.dumps(body).encode())

    def _ask(self, method: str, body: bytes | None = None) -> Answer:
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        answer = self._client.ask(method, self._path, headers, body)
        if answer.status != 200:
            raise _error(f"{method} {self._path}", answer)
        return answer

    def _token(self) -> str:
        file = self._place.account / "token"
        try:
            with file.open("rb") as opened:
                token = opened.read(TOKEN_BYTES_MAX).strip()
        except OSError as error:
            raise Unavailable(str(file), f"cannot be read: {error.strerror}") from error
        if not _TOKEN.fullmatch(token):
            raise Unavailable(str(file), "holds no token")
        return token.decode("ascii")


def _context(account: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(account / "ca.crt"))


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise UsageError("--api-server", f"{url!r} is not a valid address: {error}") from error
    if parts.scheme != "https" or not host or parts.path.strip("/") or parts.query:
        raise UsageError("--api-server", f"{url!r} is not https://HOST[:PORT]")
    return host, port


def _error(where: str, answer: Answer) -> PortError:
    """Return the error for an answer other than 200, with the server's message."""
    words = f"status {answer.status}{_message(answer.body)}"
    if answer.status in {429, 503}:
        text = answer.headers.get("retry-after", "")
        known = text.isascii() and text.isdecimal() and len(text) < 6
        pause = min(float(text), PAUSE_MAX_SECONDS) if known else None
        return Throttled(where, words, pause)
    kind: type[PortError] = {
        401: Forbidden,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
        422: Forbidden,
    }.get(answer.status, Unavailable)
    return kind(where, words)


def _message(body: bytes) -> str:
    """Return the message of a Status object, cut; empty where there is none."""
    try:
        text = json.loads(body)["message"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return f": {text[:200]}" if isinstance(text, str) else ""


def _decoded(body: Mapping[str, Any]) -> OwnNode:
    metadata, spec = body["metadata"], body["spec"]
    annotations = metadata.get("annotations") or {}
    taints = spec.get("taints") or []
    if not all(isinstance(text, str) for text in annotations.values()):
        raise ValueError("an annotation is not text")
    return OwnNode(
        resource_version=str(metadata["resourceVersion"]),
        provider_id=str(spec.get("providerID") or ""),
        annotations=dict(annotations),
        taints=tuple(dict(taint) for taint in taints),
    )

"""Queries a Prometheus server for the value of an expression at a moment."""

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError

from reconciler import __version__
from reconciler.machine.deadline import within
from reconciler.model.errors import (
    Forbidden,
    InputError,
    NotFound,
    Refused,
    Unavailable,
    UsageError,
    why_not_reached,
    why_unreadable,
)
from reconciler.ports.metrics_history import Sample
from reconciler.telemetry.scrubbing import scrub

ANSWER_BYTES_MAX: Final = 512 * 2**20
TRIES: Final = 3
_NO_ARRAY = "answered with something that is not an instant vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusSettings:
    """The server's address, credentials and limits."""

    url: str
    """URL of the server, without `/api/v1`; Thanos and Mimir have a path of their own."""
    token: Callable[[], str] = str
    """Reads the bearer token; empty: none is sent."""
    ca_file: Path | None = None
    """Certificate authority of the server; None: those of the machine."""
    timeout_seconds: float = 120.0
    """Limit of the time until the next part of an answer; Prometheus itself ends a query after two
    minutes."""
    query_seconds: float = 300.0
    """Limit of the time until the whole answer of a query, retries included."""


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return the TLS settings of connections.

    Raises:
        InputError: The file cannot be read, or has no certificate.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise InputError(
            str(ca_file), "holds no certificate in PEM form", "see --ca-file"
        ) from error
    except OSError as error:
        raise InputError(str(ca_file), why_unreadable(error), "see --ca-file") from error


def _check_url(url: str) -> None:
    """Refuse an invalid address, or one with a secret in it, which would not be sent."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError("--prometheus", f"is not a valid address: {error}") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            "--prometheus",
            "the address carries more than host and path: a name, a password or a query",
            "a token belongs into RECONCILER_PROMETHEUS_TOKEN_FILE",
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("--prometheus", "is not an http:// or https:// URL")


class PrometheusServer:
    """Instant queries over HTTP, each tried three times.

    Redirects are not followed: a token is only for the host that it was given for.

    Raises:
        UsageError: The address is not an http:// or https:// URL, or has a secret in it.
    """

    def __init__(self, settings: PrometheusSettings) -> None:
        _check_url(settings.url)
        self._settings = settings
        timeout = urllib3.Timeout(connect=10.0, read=settings.timeout_seconds)
        context = _tls_context(settings.ca_file)
        self._pool = urllib3.PoolManager(timeout=timeout, maxsize=1, ssl_context=context)

    def query(self, expression: str, at: datetime) -> list[Sample]:
        """Return the samples of an instant vector.

        Raises:
            Forbidden: The token is refused.
            NotFound: There is no Prometheus API below the address.
            Refused: The server refuses the expression, for example because it would load too much.
            Unavailable: It did not answer, or not as a Prometheus API.
        """
        try:
            answer, content = within(
                self._settings.query_seconds, lambda: self._ask(expression, at)
            )
        except TimeoutError as error:
            raise Unavailable(self._where, f"not reached: {error}") from None
        where, document = self._where, _document(content)
        if answer in {401, 403}:
            raise Forbidden(where, f"answered {answer}", "set RECONCILER_PROMETHEUS_TOKEN")
        if answer == 404:
            raise NotFound(where, "has no /api/v1/query", "give the address of Prometheus itself")
        if answer >= 500:
            raise Unavailable(where, self._message_of(answer, document))
        if answer != 200 or document.get("status") != "success":
            raise Refused(where, self._message_of(answer, document))
        data = document.get("data")
        if not isinstance(data, Mapping) or data.get("resultType") != "vector":
            raise Unavailable(where, _NO_ARRAY)
        return [_sample(entry, where) for entry in data.get("result") or []]

    @property
    def _where(self) -> str:
        return f"Prometheus {self._settings.url}"

    def _ask(self, expression: str, at: datetime) -> tuple[int, bytes]:
        token = self._settings.token()
        headers = {"User-Agent": f"fleet-reconciler/{__version__}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            answer = self._pool.request(
                "POST",
                f"{self._settings.url.rstrip('/')}/api/v1/query",
                fields={
                    "query": expression,
                    "time": f"{at.timestamp():.3f}",
                    # Thanos would answer without the stores that are away, and call it success.
                    "partial_response": "false",
                },
                encode_multipart=False,
                headers=headers,
                retries=urllib3.Retry(
                    TRIES - 1,
                    redirect=False,
                    status_forcelist=(502, 503, 504),
                    allowed_methods=None,
                    backoff_factor=0.5,
                    raise_on_status=False,
                ),
                redirect=False,
                preload_content=False,
            )
            with answer:
                content = answer.read(ANSWER_BYTES_MAX + 1)
        except HTTPError as error:
            reason = error.reason if isinstance(error, MaxRetryError) else error
            what = f"not reached: {why_not_reached(reason or error)}"
            raise Unavailable(self._where, what, "check the address and the network") from None
        if len(content) > ANSWER_BYTES_MAX:
            limit = f"its answer is over {ANSWER_BYTES_MAX // 2**20} MiB"
            raise Refused(self._where, f"{limit}: narrow it with --match, or ask for fewer --days")
        return answer.status, content

    def _message_of(self, status: int, document: Mapping[str, Any]) -> str:
        error = " ".join(str(document.get("error") or "").split())[:300]
        text = f"answered {status}" + (f": {error}" if error else "")
        return scrub(text, (self._settings.token(),))


def _document(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, Mapping) else {}


def _sample(entry: Any, where: str) -> Sample:
    try:
        labels = {str(k): str(v) for k, v in entry["metric"].items()}
        return Sample(labels=labels, value=float(entry["value"][1]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise Unavailable(where, _NO_ARRAY) from None

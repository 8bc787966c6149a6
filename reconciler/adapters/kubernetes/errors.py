"""Translates the API server's refusals and network failures into the program's errors."""

import ssl
from collections.abc import Mapping
from typing import Any

import orjson
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
)

from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
    Unavailable,
)

TEXT_MAX = 300


class Gone(Unavailable):
    """410: the watch or the page is older than what the server keeps; list again."""


class TooLarge(Unavailable):
    """The answer is larger than the caller takes; nothing of it was kept."""


class Unreachable(Unavailable):
    """No connection to the API server could be made; nothing was sent."""


class NotAccepted(Forbidden):
    """401: the API server does not know the credentials, whatever is asked of it."""


_BY_STATUS: Mapping[int, type[PortError]] = {
    401: NotAccepted,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
}


def of_status(
    where: str, status: int, body: bytes, headers: Mapping[str, str], *, changing: bool
) -> PortError:
    """Return the error for an answer other than 2xx."""
    answer = status_object(body)
    what = f"{status} {message_of(answer, body)}"
    if status == 429 and is_webhook_refusal(answer):
        return Refused(where, what)
    if status == 429:
        return Throttled(where, what, retry_after_seconds(answer, headers))
    if status >= 500 and status != 503 and changing:
        # Timeouts inside the server are 500 and 504: the write may still happen.
        return OutcomeUnknown(where, what)
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else Refused)
    return kind(where, what)


def of_failure(where: str, error: Exception, *, changing: bool, host: str = "") -> PortError:
    """Return the error for a request without an answer."""
    why = _why_not_connected(error)
    if why:
        return Unreachable(host or where, why)
    what = f"{type(error).__name__}: {error}"[:TEXT_MAX]
    not_sent = isinstance(
        error, NewConnectionError | ConnectTimeoutError | ApiException | ConfigException
    )
    if changing and not not_sent:
        return OutcomeUnknown(where, what, "it may have been carried out")
    return Unavailable(where, what)


def _why_not_connected(error: Exception) -> str | None:
    """Return why no connection could be made; None when the failure is a different one."""
    cause = error.__cause__ or error
    certificate = _certificate_error(error)
    if certificate is not None:
        return f"its certificate is not accepted: {certificate.verify_message}"[:TEXT_MAX]
    if isinstance(error, NameResolutionError):
        return "its name cannot be resolved"
    if isinstance(error, NewConnectionError):
        text = cause.strerror if isinstance(cause, OSError) else None
        return (text or str(error)).lower()[:TEXT_MAX]
    if isinstance(error, ConnectTimeoutError):  # for urllib3 it is the base class of the one above
        return "no connection within the time allowed"
    return None


def _certificate_error(error: Exception) -> ssl.SSLCertVerificationError | None:
    """Return OpenSSL's refusal of a certificate, which the client wraps twice; None without one."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLCertVerificationError):
        found = found.__cause__ or found.__context__
    return found


FAILURES = (HTTPError, ApiException, ConfigException, OSError)
"""What the client's transport raises when there is no answer."""


def status_object(body: bytes) -> Mapping[str, Any]:
    """Return the metav1.Status of a refusal; empty when there is none."""
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def message_of(answer: Mapping[str, Any], body: bytes) -> str:
    """Return its message, cut; a body that is not a Status (such as a proxy's) is cut too."""
    message = answer.get("message")
    text = message if isinstance(message, str) else body.decode(errors="replace")
    return text[:TEXT_MAX]


def retry_after_seconds(answer: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """Return the pause that the server asks for, in a header or the Status; None without one."""
    details = answer.get("details")
    asked = headers.get("Retry-After") or (
        details.get("retryAfterSeconds") if isinstance(details, dict) else None
    )
    try:
        return max(0.0, float(asked)) if asked is not None else None
    except (TypeError, ValueError):
        return None


def pause_asked_seconds(status: int, body: bytes, headers: Mapping[str, str]) -> float | None:
    """Return how long a busy server asks to wait before a retry; None when it does not.

    A refusal by a budget or a webhook asks for no wait: a later cycle decides about its object.
    """
    if status != 429:
        return None
    answer = status_object(body)
    if is_budget_refusal(answer) or is_webhook_refusal(answer):
        return None
    return retry_after_seconds(answer, headers)


def busy_seconds(error: Exception, longest_seconds: float) -> float:
    """Return the pause in a busy server's error, within the limit; 0 without one."""
    asked = error.retry_after_seconds if isinstance(error, Throttled) else None
    return min(asked or 0.0, longest_seconds)


def is_budget_refusal(answer: Mapping[str, Any]) -> bool:
    """Return whether an eviction was refused by a budget, and not by request throttling."""
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "DisruptionBudget" for cause in causes
    ):
        return True
    message = str(answer.get("message", "")).lower()
    return "disruption budget" in message or "poddisruptionbudget" in message


def is_webhook_refusal(answer: Mapping[str, Any]) -> bool:
    """Return whether an admission webhook denied the request, with whatever status it chose.

    It is about one object; the server has time for others. Source: apiserver's ToStatusErr
    (pkg/admission/plugin/webhook/errors); KubeVirt denies evictions so, with 429.
    """
    message = str(answer.get("message", ""))
    return message.startswith("admission webhook ") and " denied the request" in message

"""Answers that are not objects: metav1.Status, for every error and for plain success.

Source: k8s.io/apimachinery/pkg/api/errors; reasons, codes and messages are the API server's.
"""

from typing import Any

from reconciler.model.errors import ReconcilerError
from reconciler.sandbox.cluster.objects.resources import Resource

JsonObject = dict[str, Any]
"""One Kubernetes object, or a part of one, as parsed JSON."""


class ApiError(ReconcilerError):
    """What the API server answers instead of an object.

    Args:
        code: HTTP status.
        reason: metav1.StatusReason, such as `NotFound`; may be empty.
        message: What people read.
        details: metav1.StatusDetails; None leaves it out.
    """

    def __init__(
        self, code: int, reason: str, message: str, details: JsonObject | None = None
    ) -> None:
        super().__init__("cluster", message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def retry_after_seconds(self) -> int | None:
        """Return the value of the Retry-After header."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return int(seconds) if seconds else None

    def status(self) -> JsonObject:
        """Return the Status object of the answer's body."""
        body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}


def success(resource: Resource | None = None, name: str = "", uid: str = "") -> JsonObject:
    """Return the Status of a request that has no object to answer with."""
    body: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if resource is not None:
        body["details"] = _details(resource, name) | {"uid": uid}
    return body


def _details(resource: Resource, name: str) -> JsonObject:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> ApiError:
    """Return a 404 for an object."""
    message = f'{resource.qualified} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(resource, name))


def no_such_path() -> ApiError:
    """Return a 404 for a URL that no resource answers."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> ApiError:
    """Return a 409 for a name that is taken."""
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """Return a 409 for a stale resourceVersion or a precondition that fails."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def bad_request(message: str) -> ApiError:
    """Return a 400 for what cannot be parsed."""
    return ApiError(400, "BadRequest", message)


def invalid(resource: Resource, name: str, field: str, message: str) -> ApiError:
    """Return a 422 for an object that breaks one rule at `field`."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details: JsonObject = {
        "name": name,
        "group": resource.group,
        "kind": resource.kind,
        "causes": [{"reason": "FieldValueInvalid", "message": message, "field": field}],
    }
    details = {key: value for key, value in details.items() if value}
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {field}: {message}', details)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """Return a 403 by admission."""
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _details(resource, name))


def internal_error(message: str) -> ApiError:
    """Return a 500 for an unexpected error."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {})


def unauthorized() -> ApiError:
    """Return a 401 for a missing or wrong bearer token."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    """Return a 405 for a verb that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def unsupported_patch_type(given: str) -> ApiError:
    """Return a 415 for a patch type that does not exist."""
    return _unsupported_media_type(
        "application/json-patch+json, application/merge-patch+json, "
        f"application/strategic-merge-patch+json, application/apply-patch+yaml (got {given!r})"
    )


def protobuf_not_read(given: str) -> ApiError:
    """Return a 415 for protobuf, which a real API server reads; `kubectl create NOUN` sends it."""
    return _unsupported_media_type(
        f"application/json, application/yaml (got {given!r}, which the simulated cluster does not"
        " read: kubectl create NOUN … --dry-run=client -o yaml | kubectl apply -f -, or start the"
        " sandbox with --control-plane kwok)"
    )


def _unsupported_media_type(accepted: str) -> ApiError:
    begin = "the body of the request was in an unknown format - accepted media types include: "
    return ApiError(415, "UnsupportedMediaType", begin + accepted, {})


def expired(message: str) -> ApiError:
    """Return a 410 for a resourceVersion that the watch log no longer has."""
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, cause: str, retry_after_seconds: int = 0) -> ApiError:
    """Return a 429 for an eviction that a budget does not allow now."""
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return ApiError(429, "TooManyRequests", message, details)

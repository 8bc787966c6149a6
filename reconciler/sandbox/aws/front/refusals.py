"""Encodes AWS errors, in the three forms that its services use."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from xml.sax.saxutils import escape

REQUEST_LIMIT = "RequestLimitExceeded"
_REQUEST_ID = "00000000-0000-0000-0000-000000000000"
_STATUSES: Mapping[str, int] = MappingProxyType(
    {
        REQUEST_LIMIT: 503,
        "InternalError": 500,
        "InternalFailure": 500,
        "ServiceUnavailable": 503,
        "Unavailable": 503,
        "RequestTimeout": 503,
        "UnauthorizedOperation": 403,
        "AccessDenied": 403,
        "OptInRequired": 401,
        "AuthFailure": 401,
    }
)
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        REQUEST_LIMIT: "Request limit exceeded.",
        "InternalError": "An internal error has occurred",
        "ServiceUnavailable": (
            "The request has failed due to a temporary failure of the server. "
            "Please try again later."
        ),
        "Unavailable": "The server is overloaded and can't handle the request.",
        "UnauthorizedOperation": "You are not authorized to perform this operation.",
        "InvalidInstanceID.NotFound": "The instance ID '{instance}' does not exist",
        "FleetNotInModifiableState": "The fleet is not in a modifiable state.",
    }
)


def status_of(code: str) -> int:
    """Return the HTTP status of an error code. Source: EC2 API reference, error codes."""
    return _STATUSES.get(code, 400)


def words_of(code: str, parameters: Mapping[str, str]) -> str:
    """Return AWS's text for an error code, as far as it is known."""
    words = _WORDS.get(code, code)
    return words.format(instance=parameters.get("InstanceId.1", ""))


def body_of(service: str, code: str, message: str, *, is_json: bool) -> tuple[str, bytes]:
    """Return the content type and the body of an error answer."""
    if is_json:
        document = {"__type": code, "message": message}
        return "application/x-amz-json-1.0", json.dumps(document).encode()
    error = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if service == "ec2":
        inner = f"<Response><Errors><Error>{error}</Error></Errors>"
        text = f"{inner}<RequestID>{_REQUEST_ID}</RequestID></Response>"
    elif service == "s3":
        text = f"<Error>{error}<RequestId>{_REQUEST_ID}</RequestId></Error>"
    else:
        inner = f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error>"
        text = f"{inner}<RequestId>{_REQUEST_ID}</RequestId></ErrorResponse>"
    return "text/xml", f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()

"""Translates AWS's error codes and network failures into the program's errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from reconciler.model.errors import (
    Conflict,
    Forbidden,
    InsufficientCapacity,
    NotFound,
    OutcomeUnknown,
    PortError,
    Refused,
    TerminationProtected,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import InstanceId

# Source: EC2 API reference, "Common client errors" and "Server errors"; botocore's own list of
# throttling codes (botocore.retries.standard).
THROTTLING = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "PriorRequestNotComplete",
        "BandwidthLimitExceeded",
        "SlowDown",
        "EC2ThrottledException",
    }
)
FORBIDDEN = frozenset(
    {
        "UnauthorizedOperation",
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "Blocked",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "OptInRequired",
        "PendingVerification",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_OLD_OR_WRONG = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
"""Those of them that no policy gives: the credentials are old or wrong, or the clock is."""
CAPACITY = frozenset(
    {
        "MaxSpotInstanceCountExceeded",
        "UnfulfillableCapacity",
        "VcpuLimitExceeded",
        "InstanceLimitExceeded",
        "MaxScheduledInstanceCapacityExceeded",
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientCapacity",
    }
)
BUSY = frozenset({"ResourceContention", "ResourceInUse", "ScalingActivityInProgress"})
"""Auto Scaling's codes for an object that is busy with an earlier change."""
_NOT_FOUND = ("not found", "no managed instance found")
"""Part of messages of Auto Scaling's ValidationError, which has no separate code for this."""
_PROTECTED = "disableapitermination"
"""The attribute, in the message of EC2's OperationNotPermitted, which has other causes too."""
_INSTANCE_ID = re.compile(r"\bi-[0-9a-f]+\b")
SERVER = frozenset({"InternalError", "InternalFailure", "RequestTimeout"})
UNAVAILABLE = frozenset({"Unavailable", "ServiceUnavailable", "ServerInternal"})
TEXT_MAX = 300
_UNREADABLE = (
    ResponseParserError,
    ValueError,
    ArithmeticError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)
"""What botocore's parsers and our readers raise for an answer that does not match its API:
botocore's error classes do not cover an invalid number or time."""
_STILL_EXPIRED = "refreshed credentials are still expired"
"""Part of the message of botocore's RuntimeError, which has no class of its own for this."""


@contextmanager
def translated(where: str, *, changing: bool) -> Iterator[None]:
    """Translate what calls of AWS raise into the errors of the ports.

    These are botocore's exceptions, those for malformed answers, and those of this machine.

    Args:
        where: The call and its object, for people.
        changing: Whether the call changes something: then a lost answer leaves the result unknown.
    """
    try:
        yield
    except ClientError as error:
        raise of_client_error(where, error, changing=changing) from error
    except BotoCoreError as error:
        raise of_failure(where, error, changing=changing) from error
    except _UNREADABLE as error:
        raise of_unreadable(where, error, changing=changing) from error
    except OSError as error:
        raise of_system_error(where, error, changing=changing) from error
    except RuntimeError as error:
        if _STILL_EXPIRED not in str(error):
            raise  # a bug of ours
        raise Forbidden(  # nothing was sent
            where,
            "the credentials have expired: they were not renewed in time",
            "check their source and this machine's clock",
        ) from error


def code_of(error: ClientError) -> str:
    """Return EC2's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def of_client_error(where: str, error: ClientError, *, changing: bool) -> PortError:
    """Return the error for an answer with an error code."""
    code = code_of(error)
    message = str(error.response.get("Error", {}).get("Message", ""))
    what = code if message == code else f"{code}: {message}"[:TEXT_MAX]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in THROTTLING:
        return Throttled(where, what)
    if code in SERVER or (status >= 500 and code not in UNAVAILABLE | CAPACITY):
        return OutcomeUnknown(where, what) if changing else Unavailable(where, what)
    protected = _protected(code, message)
    if protected:
        return TerminationProtected(where, what, protected)
    if code == "ValidationError" and any(each in message.lower() for each in _NOT_FOUND):
        return NotFound(where, what)
    if code in _OLD_OR_WRONG:
        return Forbidden(where, what, "check the credentials and this machine's clock")
    return _class_of(code)(where, what)


def _protected(code: str, message: str) -> frozenset[InstanceId]:
    """Return the instances that a refusal of TerminateInstances names as protected."""
    if code != "OperationNotPermitted" or _PROTECTED not in message.lower():
        return frozenset()
    return frozenset(map(InstanceId, _INSTANCE_ID.findall(message)))


def _class_of(code: str) -> type[PortError]:
    if code in FORBIDDEN:
        return Forbidden
    if code in CAPACITY:
        return InsufficientCapacity
    if code in UNAVAILABLE:
        return Unavailable
    if code.endswith(("NotFound", "NotFoundException")):
        return NotFound
    # IncorrectState, FleetNotInModifiableState, …: the object is busy with an earlier change.
    return Conflict if code.endswith("State") or code in BUSY else Refused


def of_failure(where: str, error: BotoCoreError, *, changing: bool) -> PortError:
    """Return the error for a call without an answer."""
    what = f"{type(error).__name__}: {error}"[:TEXT_MAX]
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return Forbidden(where, what, "boto3's own chain of credentials is used")
    not_sent = isinstance(
        error, ConnectTimeoutError | EndpointConnectionError | ProxyConnectionError | SSLError
    )
    if changing and isinstance(error, HTTPClientError) and not not_sent:
        return OutcomeUnknown(where, what, "it may have been carried out")
    if isinstance(error, EndpointConnectionError):
        return Unavailable(where, what, "check the network, the Region's name and AWS_ENDPOINT_URL")
    return Unavailable(where, what)


def of_unreadable(where: str, error: Exception, *, changing: bool) -> PortError:
    """Return the error for an answer that is not AWS's, such as a proxy's own page."""
    what = f"{type(error).__name__}: {error}"[:TEXT_MAX]
    if changing:
        return OutcomeUnknown(where, what, "it may have been carried out")
    return Unavailable(where, what, "check proxies and AWS_ENDPOINT_URL")


def of_system_error(where: str, error: OSError, *, changing: bool) -> PortError:
    """Return the error for one of this machine, such as too many open files."""
    reason = (error.strerror or type(error).__name__).lower()
    what = f"{reason}: {error.filename}" if error.filename is not None else reason
    if changing:
        return OutcomeUnknown(where, what, "it may have been carried out")
    return Unavailable(where, what)

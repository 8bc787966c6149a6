"""What decoders of several AWS services share: tags, times, numbers, reading entry by entry."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from reconciler.model.fleet import CLUSTER_TAG, FleetEvent
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.snapshot import Ignored
from reconciler.model.text import cut, escape_surrogates
from reconciler.records.reasons import reason_of
from reconciler.records.times import YEARS
from reconciler.telemetry.scrubbing import scrub

FLEET_ID_TAG = "aws:ec2:fleet-id"
GROUP_NAME_TAG = "aws:autoscaling:groupName"
TEMPLATE_VERSION_TAG = "aws:ec2launchtemplate:version"

_CODE = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
"""EC2's error codes in running text: two capitalised parts or more,
`InsufficientInstanceCapacity`."""

_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")
"""A thousand characters that only `aws sts decode-authorization-message` reads."""
_READ_MAX = 4096
MESSAGE_MAX = 300
"""How many characters are kept of what AWS says of one failed launch."""

Count = Annotated[int, Meta(ge=0, lt=2**31)]


class Wire(Struct, gc=False, rename="pascal"):
    """Base of the structs that mirror entries of EC2's and Auto Scaling's answers."""


class TagWire(Wire):
    """One tag."""

    key: str
    value: str | None = None


S = TypeVar("S", bound=Struct)


def read_entries(
    entries: Any, shape: type[S], kind: str, id_key: str, ignored: list[Ignored]
) -> Iterator[S]:
    """Yield a list of an answer entry by entry; what cannot be read goes to `ignored`."""
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes):
        if entries is not None:
            ignored.append(Ignored(code="unreadable", kind=kind))
        return
    for entry in entries:
        try:
            yield msgspec.convert(entry, type=shape)
        except (ValueError, OverflowError, RecursionError) as error:
            name = entry.get(id_key) if isinstance(entry, Mapping) else None
            known = name if isinstance(name, str) else ""
            ignored.append(
                Ignored(code="unreadable", kind=kind, name=known, detail=reason_of(error))
            )


def tags_of(tags: Iterable[TagWire] | None) -> Labels:
    """Return tags in the model's form."""
    return FrozenMap((tag.key, tag.value or "") for tag in tags) if tags else NO_LABELS


def is_of_cluster(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether the tags say that something belongs to the cluster."""
    return tags.get(CLUSTER_TAG) == cluster or f"kubernetes.io/cluster/{cluster}" in tags


def moment_of(value: Any) -> datetime | None:
    """Return a time given by boto3 (datetime), the CLI (RFC 3339) or the raw API (seconds).

    Raises:
        ValueError: It is none of these, or its year is not in `YEARS`.
    """
    match value:
        case None | "":
            return None
        case datetime():
            moment = value
        case str():
            moment = datetime.fromisoformat(value)
        case bool():
            raise ValueError("a truth value is not a date")
        case int() | float():
            moment = _from_seconds(value)
        case _:
            raise ValueError(f"{type(value).__name__} is not a date")
    try:
        in_utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment.isoformat()} is not a date") from error
    if in_utc.year not in YEARS:
        raise ValueError(f"its year is {in_utc.year}, not from {YEARS[0]} to {YEARS[-1]}")
    return in_utc


def _from_seconds(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OSError, OverflowError) as error:
        raise ValueError(f"{seconds!r} s is not a date") from error


def error_code_in(text: str) -> str:
    """Return the first error code in a message for people; empty where it has none."""
    found = _CODE.search(text)
    return found.group() if found is not None else ""


def launch_error(at: datetime, code: str, message: str) -> FleetEvent:
    """Return a failed launch with AWS's code and words.

    Args:
        at: When it failed.
        code: The code of its own field; where it is empty, one in the message counts.
        message: For people.
    """
    words = " ".join(_ENCODED.sub("", scrub(message[:_READ_MAX])).split())
    return FleetEvent(
        at=at,
        code=escape_surrogates(code or error_code_in(message)),
        message=escape_surrogates(cut(words, MESSAGE_MAX)),
    )

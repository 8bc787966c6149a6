"""What decoders of several AWS services share: tags, times, numbers, reading entry by entry."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from reconciler.model.fleet import CLUSTER_TAG
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.snapshot import Ignored
from reconciler.records.reasons import reason_of
from reconciler.records.times import YEARS

FLEET_ID_TAG = "aws:ec2:fleet-id"
GROUP_NAME_TAG = "aws:autoscaling:groupName"
TEMPLATE_VERSION_TAG = "aws:ec2launchtemplate:version"

_CODE = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
"""EC2's error codes in running text: two capitalised parts or more,
`InsufficientInstanceCapacity`."""


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
    return FrozenMap((each.key, each.value or "") for each in tags) if tags else NO_LABELS


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


def error_code_in(text: str, otherwise: str) -> str:
    """Return the first error code in a message for people."""
    found = _CODE.search(text)
    if found is not None:
        return found.group()
    return "InsufficientInstanceCapacity" if "capacity" in text.lower() else otherwise

"""The field types of a sector config: from what was written to the final value.

Each names its unit, its limits, and what an editor should offer (JSON Schema).
"""

import re
from collections.abc import Callable
from datetime import time
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr, WithJsonSchema

from reconciler.config import scalars
from reconciler.config.faults import out_of_range, quoted, wrong_type
from reconciler.model import ids
from reconciler.model.host_port import host_and_port
from reconciler.model.name_expression import parse_expression
from reconciler.planner import disruption_settings as planner

T = TypeVar("T")
NumberT = TypeVar("NumberT", int, float, Decimal)

_DURATION_PATTERN = r"^(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s?)?$"
_QUANTITY_PATTERN = r"^\+?(\d+(\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$"


def _json(**schema: Any) -> WithJsonSchema:
    """Return a type's JSON Schema."""
    return WithJsonSchema(schema)


def must_be(*, expected: bool, why: str) -> AfterValidator:
    """Refuse the other value, which asks for something that is never done."""

    def check(value: bool) -> bool:  # noqa: FBT001 - a validator
        if value is not expected:
            raise wrong_type(why)
        return value

    return AfterValidator(check)


def at_least(lowest: NumberT) -> AfterValidator:
    """Return a lower limit, as a `config/range` fault."""

    def check(value: NumberT) -> NumberT:
        if value < lowest:
            raise out_of_range(f"must be {lowest} or more, not {value}")
        return value

    return AfterValidator(check)


def at_most(highest: NumberT) -> AfterValidator:
    """Return an upper limit, as a `config/range` fault."""

    def check(value: NumberT) -> NumberT:
        if value > highest:
            raise out_of_range(f"must be {highest} or less, not {value}")
        return value

    return AfterValidator(check)


def above_zero(value: NumberT) -> NumberT:
    """Raise a `config/range` fault for zero."""
    if value <= 0:
        raise out_of_range("must be more than 0")
    return value


def matching(check: Callable[[str], bool], expected: str) -> AfterValidator:
    """Return a check of a text's form, as a `config/type` fault; the text is not repeated."""

    def validate(value: str) -> str:
        if not check(value):
            raise wrong_type(f"must be {expected}")
        return value

    return AfterValidator(validate)


def text_like(pattern: str, expected: str) -> AfterValidator:
    """Return a check by a whole-text regular expression, as a `config/type` fault."""
    compiled = re.compile(pattern, re.ASCII)
    return matching(lambda text: compiled.fullmatch(text) is not None, expected)


Text: TypeAlias = Annotated[str, BeforeValidator(scalars.text), _json(type="string")]
FilePath: TypeAlias = Annotated[
    Text, matching(lambda path: path.strip() != "", "the path of a file")
]
Name: TypeAlias = Annotated[
    str, BeforeValidator(scalars.any_text), _json(type=["string", "number", "boolean"])
]
"""A text that keeps its literal form, whatever it looks like (`1234`, `true`)."""
_EXPRESSION_LENGTH_MAX = 200
_PRIORITY_DIGITS_MAX = 6


def _expression(text: str) -> str:
    """Raise a `config/type` fault for what is no expression; it says which part is meant."""
    expected = f"must be a regular expression (RE2) of at most {_EXPRESSION_LENGTH_MAX} characters"
    if not 0 < len(text) <= _EXPRESSION_LENGTH_MAX:
        raise wrong_type(expected)
    try:
        parse_expression(text)
    except ValueError as error:
        raise wrong_type(f"{expected}: {quoted(str(error))}") from error
    return text


NamePattern: TypeAlias = Annotated[Text, AfterValidator(_expression)]
"""A regular expression that is looked for anywhere in a name."""


def _number_of_key(text: object) -> object:
    """Return a key as text: a short whole number becomes one."""
    digits = str(text)
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _PRIORITY_DIGITS_MAX):
        raise wrong_type(f"must be a whole number from 0 to 999999, not {quoted(digits)}")
    return int(digits)


PriorityNumber: TypeAlias = Annotated[int, BeforeValidator(_number_of_key)]
"""A priority as the key of a mapping."""
_NAMESPACE = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE_TEXT = "the name of a namespace (a-z, 0-9 and '-', at most 63 characters)"
_NAMESPACE_JSON = _json(type="string", pattern=f"^{_NAMESPACE}$")
LeaseNamespace: TypeAlias = Annotated[Text, text_like(_NAMESPACE, _NAMESPACE_TEXT), _NAMESPACE_JSON]
NamespaceName: TypeAlias = Annotated[
    Text,
    text_like(_NAMESPACE, f"{_NAMESPACE_TEXT}; leave it out for all of them"),
    _NAMESPACE_JSON,
]
RecordingPath: TypeAlias = Annotated[
    Text,
    text_like(
        r"(/.*|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_./-]*)?)?",
        "an absolute path of a directory, or s3://bucket/prefix",
    ),
    _json(type="string"),
]
Boolean: TypeAlias = Annotated[bool, BeforeValidator(scalars.boolean), _json(type="boolean")]
Integer: TypeAlias = Annotated[int, BeforeValidator(scalars.integer), _json(type="integer")]
Count: TypeAlias = Annotated[
    int, BeforeValidator(scalars.integer), at_least(0), _json(type="integer", minimum=0)
]
_LABEL_KEY = (
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
LabelKey: TypeAlias = Annotated[
    Text,
    text_like(_LABEL_KEY, "the key of a label, such as example.com/team"),
    _json(type="string", pattern=f"^{_LABEL_KEY}$"),
]
_NODE_LABEL = _LABEL_KEY + r"(=([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?)?"
NodeLabelText: TypeAlias = Annotated[
    Text,
    text_like(_NODE_LABEL, "a label of nodes, written as `key` or `key=value`"),
    _json(type="string", pattern=f"^{_NODE_LABEL}$"),
]
Verbosity: TypeAlias = Annotated[Count, at_most(3)]
StuckEndCount: TypeAlias = Annotated[Count, at_most(200)]
PositiveCount: TypeAlias = Annotated[
    int, BeforeValidator(scalars.integer), at_least(1), _json(type="integer", minimum=1)
]
Capacity: TypeAlias = Annotated[
    int,
    BeforeValidator(scalars.integer),
    at_least(0),
    at_most(100_000),
    _json(type="integer", minimum=0, maximum=100_000),
]
"""Nodes; EC2 allows 100,000 over all fleets of a Region (EC2 Fleet quotas, read 2026)."""
InitialCount: TypeAlias = Annotated[Capacity, at_most(10_000)]
"""Nodes a fleet is created with: EC2 takes a target of 10,000 per fleet."""
IntegerTo99: TypeAlias = Annotated[Count, at_most(99)]
IntegerTo64: TypeAlias = Annotated[PositiveCount, at_most(64)]
EbsSize: TypeAlias = Annotated[PositiveCount, at_most(65_536)]
EbsIops: TypeAlias = Annotated[Count, at_least(100)]
EbsThroughput: TypeAlias = Annotated[Count, at_least(125), at_most(1000)]
MaxPods: TypeAlias = Annotated[Count, at_most(737)]
"""737 is the most that the VPC CNI gives a node."""
Share: TypeAlias = Annotated[
    float,
    BeforeValidator(scalars.real),
    at_least(0.0),
    at_most(1.0),
    _json(type="number", minimum=0, maximum=1),
]
Percent: TypeAlias = Annotated[
    float,
    BeforeValidator(scalars.real),
    at_least(0.0),
    at_most(100.0),
    _json(type="number", minimum=0, maximum=100),
]
OverSubscription: TypeAlias = Annotated[
    float,
    BeforeValidator(scalars.real),
    at_least(0.0),
    at_most(10.0),
    _json(type="number", minimum=0, maximum=10),
]
Seconds: TypeAlias = Annotated[
    float,
    BeforeValidator(scalars.duration_seconds),
    _json(
        anyOf=[{"type": "number", "minimum": 0}, {"type": "string", "pattern": _DURATION_PATTERN}]
    ),
]
PositiveSeconds: TypeAlias = Annotated[Seconds, AfterValidator(above_zero)]
TimeOfDay: TypeAlias = Annotated[
    time,
    BeforeValidator(scalars.time_of_day),
    _json(
        anyOf=[
            {"type": "string", "pattern": r"^\d{1,2}(:\d{2}){0,2}$"},
            {"type": "integer", "minimum": 0, "maximum": 86_400},
        ]
    ),
]
Weekday: TypeAlias = Annotated[
    int,
    BeforeValidator(scalars.weekday),
    _json(
        anyOf=[
            {"type": "integer", "minimum": 1, "maximum": 7},
            {"enum": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]},
            {"type": "string"},
        ]
    ),
]
Price: TypeAlias = Annotated[
    Decimal, BeforeValidator(scalars.price), _json(type="number", minimum=0)
]
PositivePrice: TypeAlias = Annotated[Price, AfterValidator(above_zero)]
QUANTITY_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _QUANTITY_PATTERN}]
}
CpuMilli: TypeAlias = Annotated[
    int, BeforeValidator(partial(scalars.quantity, scale=1000)), WithJsonSchema(QUANTITY_SCHEMA)
]
PositiveCpuMilli: TypeAlias = Annotated[CpuMilli, AfterValidator(above_zero)]
Bytes: TypeAlias = Annotated[
    int, BeforeValidator(scalars.quantity), WithJsonSchema(QUANTITY_SCHEMA)
]
PositiveBytes: TypeAlias = Annotated[Bytes, AfterValidator(above_zero)]
InstanceTypeName: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.text),
    text_like(r"[a-z0-9-]+\.[a-z0-9-]+", "an EC2 instance type such as m5.xlarge"),
    _json(type="string", pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$"),
]
Region: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.text),
    AfterValidator(scalars.region),
    _json(type="string", pattern=ids.REGION_PATTERN),
]


def _is_server(url: str) -> bool:
    """Return whether it is empty, or the address of a server without credentials."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    more = parts.username or parts.password or parts.query or parts.fragment
    return not url or bool(
        url.startswith(("https://", "http://"))
        and parts.hostname
        and not more
        and url.isprintable()
        and " " not in url
    )


Url: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.any_text),
    matching(_is_server, "a URL such as https://HOST:PORT, without a name, password or query"),
    _json(type="string"),
]
QueueUrl: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.any_text),
    text_like(
        r"(https?://[^/\s]+/[0-9]{12}/[A-Za-z0-9_-]{1,80}(\.fifo)?)?",
        "the URL of an SQS queue (https://sqs.us-west-2.amazonaws.com/123456789012/name)",
    ),
    _json(type="string"),
]
SecretUrl: TypeAlias = Annotated[
    SecretStr,
    BeforeValidator(scalars.secret_url),
    _json(type="string", writeOnly=True),
]
"""Its text is never part of a message."""


def _listenable(text: str) -> str:
    """Return the text, if the status server can use it as its address."""
    try:
        host_and_port(text)
    except ValueError as error:
        raise wrong_type(f"{error} (for example 127.0.0.1:9235)") from None
    return text


HostPort: TypeAlias = Annotated[
    Text, AfterValidator(_listenable), _json(type="string", pattern=r"^[^@]*:[0-9]{1,5}$")
]
"""Where a server listens."""
HostName: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.text),
    text_like(r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?", "a host name without a port"),
    _json(type="string"),
]
Timezone: TypeAlias = Annotated[
    str, BeforeValidator(scalars.text), AfterValidator(scalars.timezone), _json(type="string")
]
Expander: TypeAlias = Annotated[
    Literal["cost", "least-waste", "most-pods", "random", "priority"],
    BeforeValidator(scalars.any_text),
]
TaintEffect: TypeAlias = Annotated[
    Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], BeforeValidator(scalars.any_text)
]
Arch: TypeAlias = Annotated[Literal["amd64", "arm64"], BeforeValidator(scalars.any_text)]
Provider: TypeAlias = Annotated[Literal["ec2-fleet", "asg"], BeforeValidator(scalars.any_text)]
Lifecycle: TypeAlias = Annotated[Literal["spot", "on-demand"], BeforeValidator(scalars.any_text)]
SpotFallback: TypeAlias = Annotated[Literal["on-demand", "none"], BeforeValidator(scalars.any_text)]
Rebalance: TypeAlias = Annotated[Literal["drain", "ignore"], BeforeValidator(scalars.any_text)]
NodesOrPercent: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.any_text),
    AfterValidator(partial(scalars.share, lowest=0)),
    text_like(r"\d{1,6}|(100|\d{1,2})%", "a number of nodes or a percentage such as 10%"),
    _json(anyOf=[{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+%?$"}]),
]
PodsOrPercent: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.any_text),
    AfterValidator(partial(scalars.share, lowest=1)),
    text_like(r"[1-9]\d{0,5}|(100|[1-9]\d?)%", "a number of pods or a percentage such as 25%"),
    _json(anyOf=[{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^\d+%?$"}]),
]
DisruptionReason: TypeAlias = Annotated[planner.DisruptionReason, BeforeValidator(scalars.any_text)]
CronSchedule: TypeAlias = Annotated[
    str,
    BeforeValidator(scalars.text),
    AfterValidator(scalars.cron_schedule),
    _json(type="string"),
]
Tags: TypeAlias = dict[str, Name]
Labels: TypeAlias = dict[str, Name]

"""Decodes and checks one line of demand.

The pod specs are Kubernetes' own JSON, read by the same decoder as pods of the API server, with its
limits; equal specs are one object.
"""

from datetime import datetime
from typing import Annotated, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Meta, Raw, Struct, field
from msgspec.json import Decoder

from reconciler.model.cluster import Owner, PodSpec
from reconciler.model.cron import cron_job_schedule
from reconciler.model.demand import (
    BudgetDemand,
    ControllerDemand,
    ControllerKind,
    CronDemand,
    DemandLine,
    FaultDemand,
    FaultKind,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
)
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.records.demand.line_limits import (
    COUNT_MAX,
    NAME_LENGTH_MAX,
    TEN_YEARS_SECONDS,
)
from reconciler.records.kubernetes.fields import (
    LabelSelectorWire,
    Quantity,
    label_selector_of,
    resources_of,
    utc,
)
from reconciler.records.kubernetes.limits import LINES_MAX, VALUES_MAX, label_selector_size
from reconciler.records.kubernetes.pods import PodDecoder
from reconciler.records.times import YEARS

Name = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
Text = Annotated[str, Meta(max_length=NAME_LENGTH_MAX)]
Seconds = Annotated[float, Meta(ge=0, le=TEN_YEARS_SECONDS)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Percentage = Annotated[str, Meta(pattern=r"^(100|[0-9]{1,2})%$")]
_NONE = Raw(b"null")


class _Line(Struct, tag_field="kind", forbid_unknown_fields=True, gc=False):
    t: datetime


class _Containers(Struct, gc=False):
    """The containers of a pod spec: at least one, and the pod requests what they do."""

    containers: Raw


class _OwnerWire(Struct, forbid_unknown_fields=True, gc=False):
    kind: Name
    name: Name


class _ControllerWire(Struct, forbid_unknown_fields=True, gc=False):
    kind: ControllerKind
    name: Name


class _Pod(_Line, tag="pod"):
    id: Name
    spec: Raw
    namespace: Name = "default"
    controller: _OwnerWire | None = None
    labels: Raw = _NONE
    annotations: Raw = _NONE
    ran_seconds: Seconds | None = None
    kept_seconds: Seconds | None = None
    until: datetime | None = None


class _End(_Line, tag="end"):
    id: Name
    ran_seconds: Seconds | None = None
    kept_seconds: Seconds | None = None


class _Controller(_Line, tag="controller"):
    controller: _ControllerWire
    namespace: Name = "default"
    replicas: Count | None = None
    spec: Raw = _NONE
    labels: Raw = _NONE
    annotations: Raw = _NONE
    deleted: bool = False


class _Budget(_Line, tag="pdb"):
    id: Name
    namespace: Name = "default"
    selector: LabelSelectorWire | None = None
    min_available: Count | Percentage | None = None
    max_unavailable: Count | Percentage | None = None
    deleted: bool = False


class _Cron(_Line, tag="cron"):
    id: Name
    schedule: Text
    spec: Raw
    namespace: Name = "default"
    time_zone: Text = "UTC"
    labels: Raw = _NONE
    annotations: Raw = _NONE
    pods: Annotated[int, Meta(ge=1, le=100_000)] = 1
    ran_seconds: Seconds = 60.0
    until: datetime | None = None


class _Fault(_Line, tag="fault"):
    fault: FaultKind
    fleet: Text = ""
    instance_type: Text = ""
    zone: Text = ""
    code: Text = "InsufficientInstanceCapacity"
    instances: Annotated[int, Meta(ge=1, le=100_000)] = 1
    seconds: Seconds = 0.0
    until: datetime | None = None


class _Fleet(_Line, tag="fleet"):
    fleet: Name
    target: Count
    joined: Count | None = field(default=None)


class _Node(_Line, tag="node"):
    instance_type: Name
    allocatable: dict[Name, Quantity]
    fleet: Text = ""


_Any = _Pod | _End | _Controller | _Budget | _Cron | _Fault | _Fleet | _Node


class LineDecoder:
    """Decodes lines of demand; equal specs and labels are one object across all lines."""

    def __init__(self) -> None:
        self._wire = Decoder(_Any)
        self._containers = Decoder(_Containers)
        self._pods = PodDecoder()

    def decode(self, line: bytes) -> DemandLine:  # noqa: PLR0911 - one for each kind
        """Decode one line.

        Raises:
            ValueError: It cannot be read; the message names the key (as msgspec's errors do).
        """
        found: _Any = self._wire.decode(line)
        match found:
            case _Pod() as wire:
                return self._pod(wire)
            case _End() as wire:
                return _end(wire)
            case _Controller() as wire:
                return self._controller(wire)
            case _Budget() as wire:
                return _budget(wire)
            case _Cron() as wire:
                return self._cron(wire)
            case _Fault() as wire:
                return _fault(wire)
            case _Fleet() as wire:
                at = checked_time(wire.t)
                return FleetFact(at=at, fleet=wire.fleet, target=wire.target, joined=wire.joined)
            case _Node() as wire:
                return _node(wire)
            case _:
                assert_never(found)

    def _pod(self, wire: _Pod) -> PodDemand:
        at = checked_time(wire.t)
        if wire.ran_seconds is not None and wire.until is not None:
            raise ValueError("ran_seconds: a pod with `until` has none")
        if wire.id == f"{wire.namespace}/":
            raise ValueError("id: no name follows the namespace")
        _check_kept(wire)
        return PodDemand(
            at=at,
            id=wire.id,
            spec=self._spec(wire.spec),
            namespace=wire.namespace,
            controller=_owner(wire.controller),
            labels=self._labels(wire.labels, "labels"),
            annotations=self._labels(wire.annotations, "annotations"),
            ran_seconds=wire.ran_seconds,
            kept_seconds=wire.kept_seconds,
            until=_until(wire.until, at),
        )

    def _controller(self, wire: _Controller) -> ControllerDemand:
        return ControllerDemand(
            at=checked_time(wire.t),
            controller=Owner(kind=wire.controller.kind, name=wire.controller.name),
            namespace=wire.namespace,
            replicas=wire.replicas,
            spec=None if wire.spec == _NONE else self._spec(wire.spec),
            labels=self._labels(wire.labels, "labels"),
            annotations=self._labels(wire.annotations, "annotations"),
            deleted=wire.deleted,
        )

    def _cron(self, wire: _Cron) -> CronDemand:
        at = checked_time(wire.t)
        try:
            schedule = cron_job_schedule(wire.schedule)
        except ValueError as error:
            shown = f"{wire.schedule[:80]!r}"
            raise ValueError(f"schedule: {shown} is not a valid cron schedule: {error}") from error
        return CronDemand(
            at=at,
            id=wire.id,
            schedule=schedule,
            spec=self._spec(wire.spec),
            namespace=wire.namespace,
            time_zone=_time_zone(wire.time_zone),
            labels=self._labels(wire.labels, "labels"),
            annotations=self._labels(wire.annotations, "annotations"),
            pods=wire.pods,
            ran_seconds=wire.ran_seconds,
            until=_until(wire.until, at),
        )

    def _spec(self, raw: Raw) -> PodSpec:
        try:
            self._containers.decode(raw)
            spec = self._pods.template_spec(raw)
        except ValueError as error:
            raise _within(error, "spec") from error
        if spec.too_complex:
            raise ValueError(f"spec: it {spec.too_complex}")
        return spec

    def _labels(self, raw: Raw, key: str) -> Labels:
        try:
            return NO_LABELS if raw == _NONE else self._pods.labels(raw)
        except ValueError as error:
            raise _within(error, key) from error


def _within(error: ValueError, key: str) -> ValueError:
    """Return an error of a part with its path from the line's beginning, as msgspec has it."""
    what, _, path = str(error).partition(" - at `$")
    return ValueError(f"{what} - at `$.{key}{path or '`'}")


def _owner(wire: _OwnerWire | None) -> Owner | None:
    return None if wire is None else Owner(kind=wire.kind, name=wire.name)


def _end(wire: _End) -> PodEnd:
    _check_kept(wire)
    return PodEnd(
        at=checked_time(wire.t),
        id=wire.id,
        ran_seconds=wire.ran_seconds,
        kept_seconds=wire.kept_seconds,
    )


def _check_kept(wire: _Pod | _End) -> None:
    if wire.kept_seconds is not None and wire.ran_seconds is None:
        raise ValueError("kept_seconds: only a pod with `ran_seconds` ends by itself")


def _node(wire: _Node) -> NodeFact:
    try:
        allocatable = resources_of(wire.allocatable)
    except ValueError as error:
        raise ValueError(f"allocatable: {error}") from error
    return NodeFact(
        at=checked_time(wire.t),
        fleet=wire.fleet,
        instance_type=wire.instance_type,
        allocatable=allocatable,
    )


def _budget(wire: _Budget) -> BudgetDemand:
    both = wire.min_available is not None and wire.max_unavailable is not None
    if both or (not wire.deleted and wire.min_available is wire.max_unavailable is None):
        raise ValueError("min_available: exactly one of min_available and max_unavailable is set")
    _, lines, values = label_selector_size(wire.selector)
    if lines > LINES_MAX or values > VALUES_MAX:
        raise ValueError(f"selector: {lines} lines and {values} values are more than is compared")
    return BudgetDemand(
        at=checked_time(wire.t),
        id=wire.id,
        namespace=wire.namespace,
        selector=label_selector_of(wire.selector),
        min_available=wire.min_available,
        max_unavailable=wire.max_unavailable,
        deleted=wire.deleted,
    )


def _fault(wire: _Fault) -> FaultDemand:
    at = checked_time(wire.t)
    return FaultDemand(
        at=at,
        fault=wire.fault,
        fleet=wire.fleet,
        instance_type=wire.instance_type,
        zone=wire.zone,
        code=wire.code,
        instances=wire.instances,
        seconds=wire.seconds,
        until=_until(wire.until, at),
    )


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"time_zone: {name[:80]!r} is not a time zone") from error
    return name


def checked_time(moment: datetime, key: str = "t") -> datetime:
    """Return a time in UTC; one without a zone is taken as UTC.

    Raises:
        ValueError: Its year is not in `YEARS`; the message begins with the key.
    """
    if moment.year not in YEARS:
        raise ValueError(f"{key}: its year is {moment.year}, not from {YEARS[0]} to {YEARS[-1]}")
    found = utc(moment)
    assert found is not None  # it is given
    return found


def _until(moment: datetime | None, at: datetime) -> datetime | None:
    if moment is None:
        return None
    found = checked_time(moment, "until")
    if found < at:
        raise ValueError("until: it is before t")
    return found

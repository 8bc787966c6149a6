"""Decodes and checks one line of demand.

The pod specs are Kubernetes' own JSON, read by the same decoder as pods of the API server, with its
limits; equal specs are one object.
"""

from datetime import datetime
from typing import assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Raw
from msgspec.json import Decoder

from reconciler.model.cluster import Owner, PodSpec
from reconciler.model.cron import cron_job_schedule
from reconciler.model.demand import (
    NO_VOLUMES,
    BudgetDemand,
    ClaimDemand,
    ClaimTemplate,
    ControllerDemand,
    CronDemand,
    DemandLine,
    FaultDemand,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
    PodVolumes,
)
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.records.demand.wires import (
    NONE,
    AnyWire,
    BudgetWire,
    ClaimTemplateWire,
    ClaimWire,
    ControllerWire,
    CronWire,
    EndWire,
    FaultWire,
    FleetWire,
    NodeWire,
    OwnerWire,
    PodWire,
    SpecPartsWire,
    TemplateSpecWire,
)
from reconciler.records.kubernetes.fields import (
    label_selector_of,
    resources_of,
    utc,
)
from reconciler.records.kubernetes.limits import (
    LINES_MAX,
    VALUES_MAX,
    label_selector_size,
)
from reconciler.records.kubernetes.pod_volumes import VolumeWire
from reconciler.records.kubernetes.pods import PodDecoder
from reconciler.records.times import YEARS


class LineDecoder:
    """Decodes lines of demand; equal specs and labels are one object across all lines."""

    def __init__(self) -> None:
        self._wire = Decoder(AnyWire)
        self._parts = Decoder(SpecPartsWire)
        self._pods = PodDecoder()

    def decode(self, line: bytes) -> DemandLine:  # noqa: PLR0911 - one for each kind
        """Decode one line.

        Raises:
            ValueError: It cannot be read; the message names the key (as msgspec's errors do).
        """
        found: AnyWire = self._wire.decode(line)
        match found:
            case PodWire() as wire:
                return self._pod(wire)
            case EndWire() as wire:
                return _end(wire)
            case ControllerWire() as wire:
                return self._controller(wire)
            case BudgetWire() as wire:
                return _budget(wire)
            case CronWire() as wire:
                return self._cron(wire)
            case ClaimWire() as wire:
                return _claim(wire)
            case FaultWire() as wire:
                return _fault(wire)
            case FleetWire() as wire:
                at = checked_time(wire.t)
                return FleetFact(at=at, fleet=wire.fleet, target=wire.target, joined=wire.joined)
            case NodeWire() as wire:
                return _node(wire)
            case _:
                assert_never(found)

    def _pod(self, wire: PodWire) -> PodDemand:
        at = checked_time(wire.t)
        if wire.ran_seconds is not None and wire.until is not None:
            raise ValueError("ran_seconds: a pod with `until` has none")
        if wire.id == f"{wire.namespace}/":
            raise ValueError("id: no name follows the namespace")
        _check_kept(wire)
        spec, volumes = self._spec(wire.spec)
        return PodDemand(
            at=at,
            id=wire.id,
            spec=spec,
            volumes=volumes,
            namespace=wire.namespace,
            controller=_owner(wire.controller),
            labels=self._labels(wire.labels, "labels"),
            annotations=self._labels(wire.annotations, "annotations"),
            ran_seconds=wire.ran_seconds,
            kept_seconds=wire.kept_seconds,
            until=_until(wire.until, at),
        )

    def _controller(self, wire: ControllerWire) -> ControllerDemand:
        templates = wire.volume_claim_templates
        if templates and wire.controller.kind != "StatefulSet":
            raise ValueError("volume_claim_templates: only a StatefulSet has them")
        policy = wire.pod_management_policy
        if policy is not None and wire.controller.kind != "StatefulSet":
            raise ValueError("pod_management_policy: only a StatefulSet has one")
        spec, volumes = (None, NO_VOLUMES) if wire.spec == NONE else self._spec(wire.spec)
        return ControllerDemand(
            at=checked_time(wire.t),
            controller=Owner(kind=wire.controller.kind, name=wire.controller.name),
            namespace=wire.namespace,
            replicas=wire.replicas,
            spec=spec,
            volumes=volumes,
            claim_templates=tuple(map(_claim_template, templates)),
            pod_management_policy=policy,
            labels=self._labels(wire.labels, "labels"),
            annotations=self._labels(wire.annotations, "annotations"),
            deleted=wire.deleted,
        )

    def _cron(self, wire: CronWire) -> CronDemand:
        at = checked_time(wire.t)
        try:
            schedule = cron_job_schedule(wire.schedule)
        except ValueError as error:
            shown = f"{wire.schedule[:80]!r}"
            raise ValueError(f"schedule: {shown} is not a valid cron schedule: {error}") from error
        spec, volumes = self._spec(wire.spec)
        return CronDemand(
            at=at,
            id=wire.id,
            schedule=schedule,
            spec=spec,
            volumes=volumes,
            namespace=wire.namespace,
            time_zone=_time_zone(wire.time_zone),
            labels=self._labels(wire.labels, "labels"),
            annotations=self._labels(wire.annotations, "annotations"),
            pods=wire.pods,
            ran_seconds=wire.ran_seconds,
            until=_until(wire.until, at),
        )

    def _spec(self, raw: Raw) -> tuple[PodSpec, PodVolumes]:
        try:
            parts = self._parts.decode(raw)
            spec = self._pods.template_spec(raw)
        except ValueError as error:
            raise _within(error, "spec") from error
        if spec.too_complex:
            raise ValueError(f"spec: it {spec.too_complex}")
        return spec, _volumes(parts.volumes) if parts.volumes else NO_VOLUMES

    def _labels(self, raw: Raw, key: str) -> Labels:
        try:
            return NO_LABELS if raw == NONE else self._pods.labels(raw)
        except ValueError as error:
            raise _within(error, key) from error


def _within(error: ValueError, key: str) -> ValueError:
    """Return an error of a part with its path from the line's beginning, as msgspec has it."""
    what, _, path = str(error).partition(" - at `$")
    return ValueError(f"{what} - at `$.{key}{path or '`'}")


def _volumes(wires: tuple[VolumeWire, ...]) -> PodVolumes:
    named = [wire.persistent_volume_claim for wire in wires]
    claims = [claim_wire.claim_name for claim_wire in named if claim_wire is not None]
    own = [wire.name for wire in wires if wire.ephemeral is not None]
    if not all((*claims, *own)):
        raise ValueError("spec.volumes: a claim or an ephemeral volume has no name")
    if not (claims or own):
        return NO_VOLUMES
    return PodVolumes(claims=tuple(dict.fromkeys(claims)), ephemeral=tuple(dict.fromkeys(own)))


def _claim_template(wire: ClaimTemplateWire) -> ClaimTemplate:
    spec = wire.spec or TemplateSpecWire()
    return ClaimTemplate(
        name=wire.metadata.name,
        storage_class=spec.storage_class_name or "",
        access_modes=spec.access_modes,
    )


def _claim(wire: ClaimWire) -> ClaimDemand:
    return ClaimDemand(
        at=checked_time(wire.t),
        id=wire.id,
        namespace=wire.namespace,
        zone=wire.zone,
        storage_class=wire.storage_class,
        driver=wire.driver,
        immediate=wire.immediate,
        access_modes=wire.access_modes,
        deleted=wire.deleted,
    )


def _owner(wire: OwnerWire | None) -> Owner | None:
    return None if wire is None else Owner(kind=wire.kind, name=wire.name)


def _end(wire: EndWire) -> PodEnd:
    _check_kept(wire)
    return PodEnd(
        at=checked_time(wire.t),
        id=wire.id,
        ran_seconds=wire.ran_seconds,
        kept_seconds=wire.kept_seconds,
    )


def _check_kept(wire: PodWire | EndWire) -> None:
    if wire.kept_seconds is not None and wire.ran_seconds is None:
        raise ValueError("kept_seconds: only a pod with `ran_seconds` ends by itself")


def _node(wire: NodeWire) -> NodeFact:
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


def _budget(wire: BudgetWire) -> BudgetDemand:
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


def _fault(wire: FaultWire) -> FaultDemand:
    at = checked_time(wire.t)
    if wire.fault == "slow-launch" and not wire.seconds:
        raise ValueError("seconds: a slow-launch has them")
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

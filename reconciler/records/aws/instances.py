"""Decodes EC2 instances of describe-instances."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from reconciler.model.fleet import Instance
from reconciler.model.frozen import NO_LABELS
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import (
    FLEET_ID_TAG,
    GROUP_NAME_TAG,
    TEMPLATE_VERSION_TAG,
    TagWire,
    Wire,
    moment_of,
    read_entries,
    tags_of,
)
from reconciler.records.reasons import reason_of

REASON_MAX = 120
"""How much is kept of EC2's words."""
STATES = frozenset({"pending", "running", "shutting-down", "terminated", "stopping", "stopped"})


class _StateWire(Wire):
    name: str


class _StateReasonWire(Wire):
    code: str | None = None
    message: str | None = None


class _PlacementWire(Wire):
    availability_zone: str | None = None


class _InstanceWire(Wire):
    instance_id: str
    state: _StateWire
    instance_type: str | None = None
    placement: _PlacementWire | None = None
    launch_time: Any = None
    instance_lifecycle: str | None = None
    private_dns_name: str | None = None
    image_id: str | None = None
    subnet_id: str | None = None
    tags: tuple[TagWire, ...] | None = None
    state_reason: _StateReasonWire | None = None


class _ReservationWire(Wire):
    instances: tuple[Any, ...] | None = None


class ActiveInstanceWire(Wire):
    """A member as describe-fleet-instances lists it."""

    instance_id: str
    instance_type: str | None = None
    spot_instance_request_id: str | None = None


def read_instances(
    answer: Mapping[str, Any], region: Region, ignored: list[Ignored]
) -> Iterable[Instance]:
    """Yield every instance of a describe-instances answer, with the membership in its tags.

    An unreadable one with a readable id is kept, so that its node does not look gone; without a
    launch time it never looks stuck.
    """
    for reservation in read_entries(
        answer.get("Reservations"), _ReservationWire, "Reservation", "ReservationId", ignored
    ):
        for entry in reservation.instances or ():
            try:
                instance = _instance(msgspec.convert(entry, type=_InstanceWire), region)
            except (ValueError, OverflowError, RecursionError) as error:
                stand_in = _stand_in(entry, region)
                name = stand_in.id if stand_in else ""
                ignored.append(
                    Ignored(code="unreadable", kind="Instance", name=name, detail=reason_of(error))
                )
                if stand_in is None:
                    continue
                instance = stand_in
            yield instance


def decode_instances(answer: Mapping[str, Any], region: Region) -> list[Instance]:
    """Return every instance of a describe-instances answer, of any owner."""
    return list(read_instances(answer, region, []))


def _stand_in(entry: Any, region: Region) -> Instance | None:
    """Return an unreadable instance as running, the assumption that removes nothing."""
    found = entry if isinstance(entry, Mapping) else {}
    instance_id, tags = found.get("InstanceId"), found.get("Tags")
    if not isinstance(instance_id, str):
        return None
    try:
        labels = tags_of(msgspec.convert(tags, type=tuple[TagWire, ...] | None))
    except (ValueError, RecursionError):
        labels = NO_LABELS
    member_of = labels.get(FLEET_ID_TAG) or labels.get(GROUP_NAME_TAG)
    return Instance(
        id=InstanceId(instance_id),
        region=region,
        fleet_id=FleetId(member_of) if member_of else None,
        state="running",
        instance_type="",
        zone="",
        launched_at=None,
        tags=labels,
    )


def _instance(wire: _InstanceWire, region: Region) -> Instance:
    if wire.state.name not in STATES:
        raise ValueError(f"unknown state {wire.state.name[:40]!r}")
    tags = tags_of(wire.tags)
    member_of = tags.get(FLEET_ID_TAG) or tags.get(GROUP_NAME_TAG)
    return Instance(
        id=InstanceId(wire.instance_id),
        region=region,
        fleet_id=FleetId(member_of) if member_of else None,
        state=wire.state.name,
        instance_type=wire.instance_type or "",
        zone=(wire.placement.availability_zone if wire.placement else None) or "",
        launched_at=moment_of(wire.launch_time),
        lifecycle="spot" if wire.instance_lifecycle == "spot" else "on-demand",
        private_dns_name=wire.private_dns_name or "",
        launch_template_version=tags.get(TEMPLATE_VERSION_TAG, ""),
        image_id=wire.image_id or "",
        subnet_id=wire.subnet_id or "",
        tags=tags,
        ended_because=_ended_because(wire),
    )


def _ended_because(wire: _InstanceWire) -> str:
    """Return why it ended; EC2's message usually begins with the code."""
    reason = wire.state_reason
    if reason is None or wire.state.name in {"pending", "running"}:
        return ""
    code, message = reason.code or "", reason.message or ""
    whole = message if message.startswith(code) else f"{code}: {message}"
    return whole.removesuffix(": ")[:REASON_MAX]


def read_active(answer: Mapping[str, Any], ignored: list[Ignored]) -> Iterable[ActiveInstanceWire]:
    """Yield the members of a describe-fleet-instances answer."""
    return read_entries(
        answer.get("ActiveInstances"), ActiveInstanceWire, "ActiveInstance", "InstanceId", ignored
    )

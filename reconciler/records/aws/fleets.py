"""Decodes EC2 Fleets and their history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from reconciler.model.fleet import FLEET_TAG, Fleet, FleetEvent
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import (
    Count,
    TagWire,
    Wire,
    is_of_cluster,
    launch_error,
    moment_of,
    read_entries,
    tags_of,
)
from reconciler.records.aws.launch_templates import LaunchTemplates, TemplateSpecificationWire
from reconciler.records.reasons import reason_of

ERROR_EVENTS = frozenset({"error", "service-error", "fleetError"})
"""The event types of errors in a fleet's history, in the CLI's documentation and in the API."""

REQUEST_EVENTS = frozenset({"fleetRequestChange", "fleet-change"})
"""The same for the creation or modification of a fleet."""

ENDED_STATES = frozenset({"deleted", "failed"})
"""Nothing is left of a fleet in these states; a new one of the same name may exist too."""


class _CapacityWire(Wire):
    total_target_capacity: Count
    target_capacity_unit_type: str | None = None


class OverrideWire(Wire):
    """One of the options that a fleet or group may launch."""

    instance_type: str | None = None
    subnet_id: str | None = None
    """One, or several separated by commas."""
    instance_requirements: Any = None
    """Attributes by which AWS chooses instance types."""
    launch_template_specification: TemplateSpecificationWire | None = None
    """Groups only: a template of its own."""
    weighted_capacity: float | str | None = None
    """Units of capacity of such an instance; Auto Scaling writes it as text."""


class _ConfigWire(Wire):
    launch_template_specification: TemplateSpecificationWire | None = None
    overrides: tuple[OverrideWire, ...] | None = None


class _CapacityRebalanceWire(Wire):
    replacement_strategy: str | None = None


class _MaintenanceWire(Wire):
    capacity_rebalance: _CapacityRebalanceWire | None = None


class SpotOptionsWire(Wire):
    """What a fleet asks of spot instances."""

    allocation_strategy: str | None = None
    instance_interruption_behavior: str | None = None
    maintenance_strategies: _MaintenanceWire | None = None

    @property
    def rebalances_capacity(self) -> bool:
        """Return whether EC2 launches instances in place of those it recommends to leave."""
        return bool(self._replacement_strategy)

    @property
    def ends_replaced(self) -> bool:
        """Return whether EC2 itself ends such instances, after a delay."""
        return self._replacement_strategy == "launch-before-terminate"

    @property
    def _replacement_strategy(self) -> str:
        rebalance = self.maintenance_strategies and self.maintenance_strategies.capacity_rebalance
        return (rebalance.replacement_strategy or "") if rebalance else ""


class _FleetWire(Wire):
    fleet_id: str
    target_capacity_specification: _CapacityWire
    fleet_state: str | None = None
    activity_status: str | None = None
    create_time: Any = None
    fulfilled_capacity: Annotated[float, Meta(ge=0, lt=2**31)] | None = None
    launch_template_configs: tuple[_ConfigWire, ...] | None = None
    spot_options: SpotOptionsWire | None = None
    tags: tuple[TagWire, ...] | None = None
    type: str | None = None


class _ShownWire(Wire):
    fleet_id: str
    fleet_state: str | None = None


class _EventInformationWire(Wire):
    event_sub_type: str | None = None
    event_description: str | None = None


class _HistoryRecordWire(Wire):
    event_type: str
    timestamp: Any
    event_information: _EventInformationWire | None = None


def read_fleets(
    answer: Mapping[str, Any],
    region: Region,
    cluster: str,
    templates: LaunchTemplates,
    ignored: list[Ignored],
) -> Iterable[Fleet]:
    """Yield our maintain fleets in a describe-fleets answer.

    The capacity of fleets of other types cannot be set: they go to `ignored`.
    """
    for wire in read_entries(answer.get("Fleets"), _FleetWire, "Fleet", "FleetId", ignored):
        tags = tags_of(wire.tags)
        if FLEET_TAG not in tags or not is_of_cluster(tags, cluster):
            continue
        if wire.fleet_state in ENDED_STATES:
            continue
        if wire.type not in {None, "maintain"}:
            if not _is_deleted(wire.fleet_state):
                name = wire.fleet_id
                ignored.append(Ignored(code="not-maintained", kind="Fleet", name=name))
            continue
        try:
            yield _fleet(wire, region, templates)
        except (ValueError, OverflowError) as error:
            why = reason_of(error)
            ignored.append(Ignored(code="unreadable", kind="Fleet", name=wire.fleet_id, detail=why))


def living_ids(answer: Mapping[str, Any]) -> Iterable[FleetId]:
    """Fleets of every type and owner that a describe-fleets answer shows, deleted ones left out."""
    for wire in read_entries(answer.get("Fleets"), _ShownWire, "Fleet", "FleetId", []):
        if not _is_deleted(wire.fleet_state):
            yield FleetId(wire.fleet_id)


def _is_deleted(state: str | None) -> bool:
    return (state or "").startswith("deleted") or state in ENDED_STATES


def units_not_nodes(overrides: Iterable[OverrideWire], unit: str | None) -> str:
    """Return why a fleet's or group's capacity does not count nodes; empty if it does.

    Args:
        overrides: Its options.
        unit: `TargetCapacityUnitType` of a fleet, `DesiredCapacityType` of a group.
    """
    if unit not in {None, "", "units"}:
        return f"its target counts {unit}, not nodes"
    weights = {override.weighted_capacity for override in overrides} - {None}
    if all(float(weight) == 1 for weight in weights if weight is not None):
        return ""
    return "its target counts units of WeightedCapacity, not nodes"


def chooses_types(overrides: Iterable[OverrideWire]) -> bool:
    """Return whether AWS chooses instance types by attributes, so that they are unknown.

    Then the type that the launch template names is not used.
    """
    return any(override.instance_requirements for override in overrides)


def _fleet(wire: _FleetWire, region: Region, templates: LaunchTemplates) -> Fleet:
    """Return the fleet; its version is that of the first launch template that it names."""
    configs = wire.launch_template_configs or ()
    specifications = [config_wire.launch_template_specification for config_wire in configs]
    first = next(
        (specification for specification in specifications if specification),
        TemplateSpecificationWire(),
    )
    overrides = [override for config in configs for override in config.overrides or ()]
    tags = tags_of(wire.tags)
    capacity = wire.target_capacity_specification
    halted = units_not_nodes(overrides, capacity.target_capacity_unit_type)
    return Fleet(
        id=FleetId(wire.fleet_id),
        name=tags[FLEET_TAG],
        provider="ec2-fleet",
        region=region,
        state=wire.fleet_state or "active",
        target_capacity=capacity.total_target_capacity,
        fulfilled_capacity=wire.fulfilled_capacity or 0.0,
        activity_status=wire.activity_status,
        created_at=moment_of(wire.create_time),
        tags=tags,
        launch_template_id=templates.id_of(first),
        launch_template_version=templates.version_of(first) if configs else "",
        further_templates=templates.further(specifications),
        instance_types=_instance_types(configs, templates),
        subnet_ids=_subnet_ids(configs),
        counts_units=bool(halted),
        launches_halted=halted,
        removals_halted=halted,
        rebalances_capacity=bool(wire.spot_options and wire.spot_options.rebalances_capacity),
    )


def _instance_types(configs: Iterable[_ConfigWire], templates: LaunchTemplates) -> tuple[str, ...]:
    """Return the types that the options name, else their launch templates.

    None if AWS chooses them, or one is not known: nodes of that one would count as drifted.
    """
    named: list[str | None] = []
    for config in configs:
        if chooses_types(config.overrides or ()):
            return ()
        specification = config.launch_template_specification
        own = templates.instance_type_of(specification) if specification else None
        named += [override.instance_type or own for override in config.overrides or ()] or [own]
    known = [each for each in named if each]
    return tuple(dict.fromkeys(known)) if len(known) == len(named) else ()


def _subnet_ids(configs: Iterable[_ConfigWire]) -> tuple[str, ...]:
    """Return every subnet that the fleet launches in.

    None where an option leaves it open, or a launch template has no options: then its own counts.
    """
    stated: list[str] = []
    for config in configs:
        own = [override.subnet_id for override in config.overrides or () if override.subnet_id]
        if not own or len(own) < len(config.overrides or ()):
            return ()
        stated += own
    return tuple(dict.fromkeys(each.strip() for text in stated for each in text.split(",")))


@dataclass(slots=True)
class History:
    """The content of describe-fleet-history for one fleet."""

    errors: list[FleetEvent] = field(default_factory=list)
    changed_at: datetime | None = None
    """The last request to create or modify it."""

    def add(self, other: "History") -> None:
        """Add another answer about the same fleet."""
        self.errors.extend(other.errors)
        times = [each for each in (self.changed_at, other.changed_at) if each is not None]
        self.changed_at = max(times, default=None)


_REFUSED = "EC2 refuses to tell it; the role needs ec2:DescribeFleetHistory"


def read_history(answer: Mapping[str, Any], ignored: list[Ignored]) -> History:
    """Return the errors of a describe-fleet-history answer, oldest first, and its last request.

    An answer without records means that EC2 refused to answer.
    """
    history = History()
    if answer["HistoryRecords"] is None:
        name = str(answer.get("FleetId", ""))
        ignored.append(Ignored(code="unreadable", kind="FleetHistory", name=name, detail=_REFUSED))
    for wire in read_entries(
        answer.get("HistoryRecords"), _HistoryRecordWire, "HistoryRecord", "EventType", ignored
    ):
        if wire.event_type not in ERROR_EVENTS | REQUEST_EVENTS:
            continue
        try:
            at = moment_of(wire.timestamp)
        except (ValueError, OverflowError):
            at = None
        if at is None:
            ignored.append(Ignored(code="unreadable", kind="HistoryRecord", name=wire.event_type))
        elif wire.event_type in REQUEST_EVENTS:
            history.add(History(changed_at=at))
        else:
            history.errors.append(_error(wire, at))
    history.errors.sort()
    return history


def _error(wire: _HistoryRecordWire, at: datetime) -> FleetEvent:
    information = wire.event_information or _EventInformationWire()
    return launch_error(at, information.event_sub_type or "", information.event_description or "")


def with_history(fleet: Fleet, history: History) -> Fleet:
    """Return the fleet with these failed launches, each once, oldest first."""
    errors = tuple(sorted(set(history.errors)))
    return replace(
        fleet,
        launch_errors=errors or fleet.launch_errors,
        changed_at=history.changed_at or fleet.changed_at,
    )

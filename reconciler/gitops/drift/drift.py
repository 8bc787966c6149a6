"""Compares config, state and EC2; pure.

Capacity within the config's limits is not drift: the capacity loop sets it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.gitops.drift.named_fleets import named_fleet
from reconciler.gitops.terraform_plan.config_facts import ConfigFacts
from reconciler.gitops.terraform_plan.planned import (
    FLEET,
    GROUP,
    LIVE_FIELDS,
    LIVE_FIELDS_OF_GROUP,
    PlannedResource,
    changed_resources,
    drifted_resources,
    provider_region,
    region_elsewhere,
    tags_of,
)
from reconciler.model.fleet import Fleet, Provider
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState
from reconciler.planner.fleets.live_fleet import LIVE_STATES
from reconciler.ports.terraform import TerraformPlanJson

_LIVE = {*LIVE_FIELDS, "target_capacity_specification"}
_LIVE_OF_GROUP = {*LIVE_FIELDS_OF_GROUP, "suspended_processes"}
"""Processes are suspended and resumed by people in an incident."""
_TYPES: Mapping[Provider, str] = {"ec2-fleet": FLEET, "asg": GROUP}
DriftKind = Literal[
    "changed-outside", "gone", "config-differs", "capacity-outside", "fleet-missing", "fleet-extra"
]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Drift:
    """Describes one resource that differs from what it should be."""

    kind: DriftKind
    """`changed-outside`: somebody changed it without Terraform.

    `gone`: somebody deleted it. `gone` also applies to one that Terraform looked for in the wrong
    region. `config-differs`: an apply is due. `capacity-outside`: the live target is below
    min_capacity or above max_capacity. `fleet-missing`, `fleet-extra`: in the config and not in
    EC2, or the other way round, or a second one of its name.
    """
    address: str
    """In Terraform; the fleet's id where only EC2 and the config were compared."""
    type: str
    fleet: str
    """Value of its `fleet` tag; empty without one."""
    detail: str
    """Names of the attributes, or the step that an apply would take. Never values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """Lists everything that differs, in a stable order."""

    drifts: tuple[Drift, ...]
    notes: tuple[str, ...] = ()
    """What could not be compared, and why; and files that should not be there any more."""

    @property
    def found(self) -> bool:
        """Return whether anything differs."""
        return bool(self.drifts)


def drift_report(plan: TerraformPlanJson) -> DriftReport:
    """Return the drift in a full (refreshing) plan."""
    drifts = {
        drift
        for resource in drifted_resources(plan)
        if (drift := _in_another_region(plan, resource) or _outside(resource)) is not None
    }
    drifts |= {
        _drift("config-differs", resource, resource.step) for resource in changed_resources(plan)
    }
    return DriftReport(drifts=tuple(sorted(drifts)))


def fleet_drift(
    facts: ConfigFacts, home: Region, cloud: CloudState, provider: Provider = "ec2-fleet"
) -> tuple[Drift, ...]:
    """Compare the config with EC2's fleets: which exist, and how large they are.

    Args:
        facts: The facts of a valid config.
        home: The Region whose fleets are rendered.
        cloud: What EC2 or Auto Scaling answered; regions that did not answer are not compared.
        provider: The provider of the compared fleets.
    """
    live = [
        named
        for fleet in cloud.fleets
        if fleet.provider == provider
        and fleet.state in LIVE_STATES
        and (named := named_fleet(fleet, facts.groups, facts.cluster)) is not None
    ]
    groups = frozenset(facts.groups.values())
    every = {*facts.made_here, *facts.fleets}
    known = every & groups if provider == "asg" else every - groups
    drifts = [
        _fleet_drift("fleet-extra", fleet, f"in {fleet.region}, not in the config")
        for fleet in live
        if fleet.name not in known or not _is_planned_in(facts, fleet.name, fleet.region)
    ]
    of_name = _oldest_by_name(fleet for fleet in live if fleet.region == home)
    if home in cloud.regions:
        expected = (name for name in facts.made_here if name in known)
        drifts += [_missing(name, provider) for name in expected if name not in of_name]
    drifts += [
        _fleet_drift("fleet-extra", fleet, f"another fleet, {of_name[fleet.name].id}, has its name")
        for fleet in live
        if fleet.region == home
        and fleet is not of_name[fleet.name]
        and fleet.name not in facts.allow_destroy
    ]
    drifts += [
        _fleet_drift("capacity-outside", fleet, outside)
        for fleet in live
        if (outside := _outside_limits(facts, fleet))
    ]
    return tuple(sorted(drifts))


def _oldest_by_name(fleets: Iterable[Fleet]) -> dict[str, Fleet]:
    """Return of several fleets with one name the oldest: capacity planning uses that one."""
    newest_first = sorted(
        fleets, key=lambda fleet: (str(fleet.created_at or ""), fleet.id), reverse=True
    )
    return {fleet.name: fleet for fleet in newest_first}


def _missing(name: str, provider: Provider) -> Drift:
    """Return the drift of a fleet of the config that does not exist."""
    kind = _TYPES[provider]
    return Drift(kind="fleet-missing", address="", type=kind, fleet=name, detail="not in EC2")


def _is_planned_in(facts: ConfigFacts, name: str, region: Region) -> bool:
    """Return whether the config has a fleet in the Region."""
    limits = facts.fleets.get(name)
    return limits is None or not limits.regions or region in limits.regions


def _outside_limits(facts: ConfigFacts, fleet: Fleet) -> str:
    """Return how a live target breaks the config's limits; empty when it does not."""
    limits = facts.fleets.get(fleet.name)
    if limits is None:
        return ""
    target = f"target capacity {fleet.target_capacity}"
    if fleet.target_capacity < limits.min_capacity and fleet.name not in facts.allow_destroy:
        return f"{target} is below min_capacity {limits.min_capacity}"
    if limits.max_capacity is not None and fleet.target_capacity > limits.max_capacity:
        return f"{target} is above max_capacity {limits.max_capacity}"
    return ""


def _fleet_drift(kind: DriftKind, fleet: Fleet, detail: str) -> Drift:
    type_ = _TYPES[fleet.provider]
    return Drift(kind=kind, address=fleet.id, type=type_, fleet=fleet.name, detail=detail)


def drift_json(report: DriftReport) -> dict[str, Any]:
    """Return the report as `--output json` prints it."""
    return {
        "drift": report.found,
        "notes": list(report.notes),
        "resources": [
            {
                "kind": drift.kind,
                "address": drift.address,
                "type": drift.type,
                "fleet": drift.fleet or None,
                "detail": drift.detail,
            }
            for drift in report.drifts
        ],
    }


def _in_another_region(plan: TerraformPlanJson, resource: PlannedResource) -> Drift | None:
    """Return drift of what was looked for in another Region than the one that it is in."""
    there = region_elsewhere(plan, resource)
    if not there:
        return None
    detail = f"the state has it in {there}, and it was looked for in {provider_region(plan)}"
    return _drift("gone", resource, detail)


def _outside(resource: PlannedResource) -> Drift | None:
    if resource.step == "delete":
        return _drift("gone", resource, "not in EC2 any more")
    ours = {FLEET: _LIVE, GROUP: _LIVE_OF_GROUP}.get(resource.type, set())
    names = set(resource.changed) - ours
    return _drift("changed-outside", resource, ", ".join(sorted(names))) if names else None


def _drift(kind: DriftKind, resource: PlannedResource, detail: str) -> Drift:
    tags = tags_of(resource.after) or tags_of(resource.before)
    fleet = tags.get("fleet", "")
    return Drift(
        kind=kind, address=resource.address, type=resource.type, fleet=fleet, detail=detail
    )

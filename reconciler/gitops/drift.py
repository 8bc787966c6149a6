"""What differs between config, state and EC2: pure. Capacity is no drift, it is the loop's."""

from dataclasses import dataclass
from typing import Any, Literal

from reconciler.gitops.planned import FLEET, PlannedResource, resources
from reconciler.ports.terraform import TerraformPlanJson

_LIVE = {
    "fleet_instance_set",
    "fleet_state",
    "fulfilled_capacity",
    "fulfilled_on_demand_capacity",
    "target_capacity_specification",
}
DriftKind = Literal["changed-outside", "gone", "config-differs"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Drift:
    """One resource that is not what it should be."""

    kind: DriftKind
    """`changed-outside`: somebody changed it past Terraform. `gone`: somebody deleted it.
    `config-differs`: an apply is due."""
    address: str
    type: str
    fleet: str
    """Value of its `fleet` tag; empty without one."""
    detail: str
    """Names of the attributes, or the step that an apply would take. Never values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """Everything that differs, in a stable order."""

    drifts: tuple[Drift, ...]

    @property
    def found(self) -> bool:
        """Whether anything differs."""
        return bool(self.drifts)


def drift_report(plan: TerraformPlanJson) -> DriftReport:
    """Read drift from a full (refreshing) plan."""
    outside = resources({"resource_changes": plan.get("resource_drift", [])})
    found = {drift for resource in outside if (drift := _outside(resource)) is not None}
    found |= {
        _drift("config-differs", resource, resource.step)
        for resource in resources(plan)
        if resource.step not in {"no-op", "read"}
    }
    return DriftReport(drifts=tuple(sorted(found)))


def drift_json(report: DriftReport) -> dict[str, Any]:
    """The report as `--output json` prints it."""
    return {
        "drift": report.found,
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


def _outside(resource: PlannedResource) -> Drift | None:
    if resource.step == "delete":
        return _drift("gone", resource, "not in EC2 any more")
    names = set(resource.changed) - (_LIVE if resource.type == FLEET else set())
    return _drift("changed-outside", resource, ", ".join(sorted(names))) if names else None


def _drift(kind: DriftKind, resource: PlannedResource, detail: str) -> Drift:
    tags = resource.after.get("tags") or resource.before.get("tags") or {}
    fleet = str(tags.get("fleet", "")) if isinstance(tags, dict) else ""
    return Drift(
        kind=kind, address=resource.address, type=resource.type, fleet=fleet, detail=detail
    )

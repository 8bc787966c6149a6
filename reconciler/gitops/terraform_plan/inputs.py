"""Binds an approved plan to its inputs, so that exactly this plan is applied or nothing; pure."""

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from reconciler.gitops.terraform_plan.planned import FLEET, GROUP, LIVE_FIELDS, LIVE_FIELDS_OF_GROUP
from reconciler.gitops.terraform_plan.pools import POOLS
from reconciler.ports.terraform import StateVersion, TerraformPlanJson
from reconciler.records.untrusted_json import mapping

_LIVE_TARGETS = (
    "on_demand_target_capacity",
    "spot_target_capacity",
    "total_target_capacity",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """Identifies the inputs and the outcome of one plan."""

    commit: str
    """Commit of the checkout; empty outside git."""
    tree_sha256: str
    """Of the root module's files."""
    plan_sha256: str
    """Of the saved plan file."""
    state: StateVersion
    targets: Mapping[str, int]
    """Live target of each existing fleet, by fleet id, as the plan saw it."""

    def differences(self, other: "PlanInputs") -> tuple[str, ...]:
        """Return what changed between the approved plan (self) and now (other), for people."""
        pairs = (
            ("the commit", self.commit[:12] or "none", other.commit[:12] or "none"),
            ("the files of the root module", self.tree_sha256[:12], other.tree_sha256[:12]),
            ("the plan file", self.plan_sha256[:12], other.plan_sha256[:12]),
            ("the state's lineage", self.state.lineage or "none", other.state.lineage or "none"),
            ("the state's serial", str(self.state.serial), str(other.state.serial)),
        )
        return tuple(f"{what} was {a}, is {b}" for what, a, b in pairs if a != b)


def inputs_json(inputs: PlanInputs) -> dict[str, Any]:
    """Return the inputs as plain JSON data."""
    return {
        "commit": inputs.commit,
        "tree_sha256": inputs.tree_sha256,
        "plan_sha256": inputs.plan_sha256,
        "state": {"lineage": inputs.state.lineage, "serial": inputs.state.serial},
        "targets": dict(sorted(inputs.targets.items())),
    }


def inputs_from(data: Mapping[str, Any]) -> PlanInputs:
    """Return the inputs from such data: the inverse of `inputs_json`.

    Raises:
        KeyError: Something is missing.
        ValueError: Something is of another type.
    """
    return PlanInputs(
        commit=str(data["commit"]),
        tree_sha256=str(data["tree_sha256"]),
        plan_sha256=str(data["plan_sha256"]),
        state=StateVersion(
            lineage=str(data["state"]["lineage"]), serial=int(data["state"]["serial"])
        ),
        targets={str(k): int(v) for k, v in data["targets"].items()},
    )


def essence(plan: TerraformPlanJson) -> str:
    """Return what a plan would do, without what the capacity loop may change meanwhile.

    A plan may replace another one with the same essence.
    """
    changes = _changes(plan)
    essential = {
        "resources": [changes[key] for key in sorted(changes)],
        "outputs": plan.get("output_changes", {}),
    }
    return hashlib.sha256(canonical(essential).encode()).hexdigest()


def is_part_of(part: TerraformPlanJson, whole: TerraformPlanJson, edited: AbstractSet[str]) -> bool:
    """Return whether a plan does nothing that another one would not do.

    Args:
        part: The remaining plan; what it does not name is done. Outputs do not count.
        whole: The approved plan.
        edited: Addresses of fleets of which some changes may be done already.
    """
    approved = _changes(whole)
    for key, change in _changes(part).items():
        there = approved.get(key)
        if there is None:
            return False
        if key[0] in edited:
            change, there = _without_pools(change), _without_pools(there)  # noqa: PLW2901 - both
        if change != there:
            return False
    return True


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _changes(plan: TerraformPlanJson) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what each resource is to become, by address and key of a deposed object."""
    return {
        (str(entry.get("address")), str(entry.get("deposed"))): {
            "address": entry.get("address"),
            "deposed": entry.get("deposed"),
            "actions": mapping(entry.get("change")).get("actions"),
            "before": _without_live(entry, "before"),
            "after": _without_live(entry, "after"),
            "after_unknown": mapping(entry.get("change")).get("after_unknown"),
        }
        for entry in plan.get("resource_changes", [])
        if mapping(entry.get("change")).get("actions") not in (["no-op"], ["read"])
    }


def _without_pools(change: Mapping[str, Any]) -> dict[str, Any]:
    sides = {
        side: {k: v for k, v in mapping(change.get(side)).items() if k != POOLS}
        for side in ("before", "after")
    }
    return {"actions": change.get("actions"), **sides}


def _without_live(entry: Mapping[str, Any], side: str) -> Any:
    attributes = mapping(entry.get("change")).get(side)
    if not isinstance(attributes, Mapping):
        return attributes
    if entry.get("type") == GROUP:
        return {key: value for key, value in attributes.items() if key not in LIVE_FIELDS_OF_GROUP}
    if entry.get("type") != FLEET:
        return attributes
    kept = {key: value for key, value in attributes.items() if key not in LIVE_FIELDS}
    blocks = kept.get("target_capacity_specification")
    if isinstance(blocks, list):
        kept["target_capacity_specification"] = [
            {k: v for k, v in mapping(block).items() if k not in _LIVE_TARGETS} for block in blocks
        ]
    return kept

"""What an approved plan is bound to, so that exactly it is applied, or nothing: pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.gitops.planned import FLEET, as_mapping
from reconciler.ports.terraform import StateVersion, TerraformPlanJson

_LIVE_FIELDS = (
    "fleet_instance_set",
    "fleet_state",
    "fulfilled_capacity",
    "fulfilled_on_demand_capacity",
)
_LIVE_TARGETS = (
    "on_demand_target_capacity",
    "spot_target_capacity",
    "total_target_capacity",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The inputs and the outcome of one plan."""

    commit: str
    """Commit of the checkout; empty outside git."""
    tree_sha256: str
    """Of the root module's files."""
    plan_sha256: str
    """Of the saved plan file."""
    state: StateVersion
    targets: Mapping[str, int]
    """Live target of each existing fleet, by fleet id, as the plan saw it."""

    def digest(self) -> str:
        """One SHA-256 over everything: what a reviewer approves."""
        return hashlib.sha256(canonical(binding_json(self)).encode()).hexdigest()

    def differences(self, other: "Binding") -> tuple[str, ...]:
        """What moved between the approved plan (self) and now (other), for people."""
        pairs = (
            ("the commit", self.commit[:12] or "none", other.commit[:12] or "none"),
            ("the files of the root module", self.tree_sha256[:12], other.tree_sha256[:12]),
            ("the plan file", self.plan_sha256[:12], other.plan_sha256[:12]),
            ("the state's lineage", self.state.lineage or "none", other.state.lineage or "none"),
            ("the state's serial", str(self.state.serial), str(other.state.serial)),
        )
        return tuple(f"{what} was {a}, is {b}" for what, a, b in pairs if a != b)


def binding_json(binding: Binding) -> dict[str, Any]:
    """The binding as plain JSON data."""
    return {
        "commit": binding.commit,
        "tree_sha256": binding.tree_sha256,
        "plan_sha256": binding.plan_sha256,
        "state": {"lineage": binding.state.lineage, "serial": binding.state.serial},
        "targets": dict(sorted(binding.targets.items())),
    }


def binding_from(data: Mapping[str, Any]) -> Binding:
    """The inverse of `binding_json`.

    Raises:
        KeyError: Something is missing.
        ValueError: Something is of another kind.
    """
    return Binding(
        commit=str(data["commit"]),
        tree_sha256=str(data["tree_sha256"]),
        plan_sha256=str(data["plan_sha256"]),
        state=StateVersion(
            lineage=str(data["state"]["lineage"]), serial=int(data["state"]["serial"])
        ),
        targets={str(k): int(v) for k, v in data["targets"].items()},
    )


def essence(plan: TerraformPlanJson) -> str:
    """What a plan would do, without what the capacity loop may change meanwhile.

    Two plans with the same essence may stand for each other.
    """
    changes = [
        {
            "address": entry.get("address"),
            "deposed": entry.get("deposed"),
            "actions": as_mapping(entry.get("change")).get("actions"),
            "before": _without_live(entry, "before"),
            "after": _without_live(entry, "after"),
            "after_unknown": as_mapping(entry.get("change")).get("after_unknown"),
        }
        for entry in plan.get("resource_changes", [])
        if as_mapping(entry.get("change")).get("actions") not in (["no-op"], ["read"])
    ]
    essential = {
        "resources": sorted(changes, key=lambda c: (str(c["address"]), str(c["deposed"]))),
        "outputs": plan.get("output_changes", {}),
    }
    return hashlib.sha256(canonical(essential).encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _without_live(entry: Mapping[str, Any], side: str) -> Any:
    attributes = as_mapping(entry.get("change")).get(side)
    if entry.get("type") != FLEET or not isinstance(attributes, Mapping):
        return attributes
    kept = {key: value for key, value in attributes.items() if key not in _LIVE_FIELDS}
    blocks = kept.get("target_capacity_specification")
    if isinstance(blocks, list):
        kept["target_capacity_specification"] = [
            {k: v for k, v in as_mapping(block).items() if k not in _LIVE_TARGETS}
            for block in blocks
        ]
    return kept

"""Reads from `terraform show -json` what a plan would do to fleets and groups; pure.

They are recognised by resource type and named by their `fleet` tag, so hand-written root modules
can be read as well as rendered ones. Format:
https://developer.hashicorp.com/terraform/internals/json-format
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from reconciler.model.fleet import Provider
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.ports.terraform import TerraformPlanJson
from reconciler.records.untrusted_json import mapping

FLEET = "aws_ec2_fleet"
GROUP = "aws_autoscaling_group"
LAUNCH_TEMPLATE = "aws_launch_template"
LIVE_FIELDS = (
    "fleet_instance_set",
    "fleet_state",
    "fulfilled_capacity",
    "fulfilled_on_demand_capacity",
)
"""Fields of a fleet that change without a change of the fleet, in addition to its target."""
LIVE_FIELDS_OF_GROUP = ("desired_capacity", "predicted_capacity", "warm_pool_size")
"""The same for a group; these include its target."""
_KEY = re.compile(r'\.module\.(?:fleet|group)\["([^"]+)"\]$')
"""Key of a fleet or group in a rendered root module."""
_ON_DEMAND = "on_demand_percentage_above_base_capacity"
Step = Literal["create", "update", "replace", "delete", "forget", "read", "no-op"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResource:
    """Says what a plan does to one managed resource."""

    address: str
    module: str
    """Address of its module, empty for the root."""
    type: str
    step: Step
    before: Mapping[str, Any]
    """Current attributes, refreshed; empty when it does not exist."""
    after: Mapping[str, Any]
    """Planned attributes, as far as they are known; empty when it is removed."""
    reason: str = ""
    """Terraform's own reason, such as `replace_because_cannot_update`."""
    deposed: str = ""
    """Terraform's key of what a replacement left to be deleted, under the address of its successor;
    empty for the resource itself."""
    importing: str = ""
    """EC2's id, when an existing resource is to be imported into the state; else empty."""
    replaced_for: tuple[str, ...] = ()
    """Attributes that cannot change in place (Terraform's `replace_paths`), sorted."""

    @property
    def is_changed(self) -> bool:
        """Return whether the plan changes it at all."""
        return self.step not in {"no-op", "read"}

    @property
    def changed(self) -> tuple[str, ...]:
        """Return the sorted names of the attributes that an update or replacement would change."""
        if self.step not in {"update", "replace"}:
            return ()
        names = set(self.before) | set(self.after)
        pairs = ((name, self.before.get(name), self.after.get(name)) for name in names)
        return tuple(
            sorted(n for n, a, b in pairs if a != b and not (_is_empty(a) and _is_empty(b)))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFleet:
    """Says what a plan does to one EC2 Fleet or Auto Scaling group and its launch template."""

    name: str
    address: str
    step: Step
    fleet_id: str
    """Empty before it exists."""
    region: str
    """Empty when the plan does not say it."""
    capacity_before: int | None
    """Live target (a group's desired capacity) when the plan was made; None: it does not exist
    yet."""
    capacity_after: int | None
    """Target after an update; None: it is removed."""
    spot: bool | None
    tags_before: Labels
    tags_after: Labels
    changed: tuple[str, ...]
    """Attributes of the fleet, and those of its template with the prefix `launch_template.`."""
    importing: bool = False
    """Whether the plan takes it into the state."""
    key: str = ""
    """What a rendered root module calls it; empty in any other."""
    tags_applied: Labels = NO_LABELS
    """Tags in the state, as the last apply left them; `tags_before` are those of now."""
    replaced_for: tuple[str, ...] = ()
    """Attributes of the fleet that cannot change in place, when it would be replaced."""
    template_name: str = ""
    """Of its launch template; empty when the plan has none in its module."""
    ami_before: str = ""
    ami_after: str = ""
    instance_types: tuple[str, ...] = ()
    terminates_instances: bool = False
    """Whether its removal would end its instances, if it is not drained."""
    provider: Provider = "ec2-fleet"

    @property
    def groups(self) -> frozenset[str]:
        """Return its name in Auto Scaling; empty for an EC2 Fleet."""
        return frozenset({self.fleet_id}) if self.provider == "asg" else frozenset()

    @property
    def touches_capacity(self) -> bool:
        """Return whether the plan changes or ends a live fleet, so that it may send a capacity."""
        return bool(self.fleet_id) and self.step in {"update", "replace", "delete"}

    @property
    def sends_capacity(self) -> bool:
        """Return whether Terraform would send a target or end the fleet: not for tags alone.

        For a group it sends only its maximum, which may lower the desired capacity.
        """
        own = {name for name in self.changed if not name.startswith("launch_template.")}
        if self.provider == "asg":
            own &= {"desired_capacity", "max_size", "min_size"}
        return self.touches_capacity and (self.step != "update" or not own <= {"tags", "tags_all"})


def resources(plan: TerraformPlanJson) -> tuple[PlannedResource, ...]:
    """Return the managed resources of a plan, in its order, without data sources."""
    return tuple(
        _resource(entry)
        for entry in plan.get("resource_changes", [])
        if entry.get("mode", "managed") == "managed"
    )


def changed_resources(plan: TerraformPlanJson) -> tuple[PlannedResource, ...]:
    """Return those of `resources` that the plan changes."""
    return tuple(resource for resource in resources(plan) if resource.is_changed)


def resources_to_apply(plan: TerraformPlanJson) -> tuple[PlannedResource, ...]:
    """Return those of `resources` that an apply changes or imports."""
    return tuple(
        resource for resource in resources(plan) if resource.is_changed or resource.importing
    )


def changes_outputs(plan: TerraformPlanJson) -> bool:
    """Return whether a plan changes outputs of the root module."""
    return any(
        output_change["actions"] != ["no-op"]
        for output_change in plan.get("output_changes", {}).values()
    )


def fleets(plan: TerraformPlanJson) -> tuple[PlannedFleet, ...]:
    """Return the fleets of a plan, sorted by name and address."""
    planned_resources = resources(plan)
    templates = {
        r.module: r for r in planned_resources if r.type == LAUNCH_TEMPLATE and not r.deposed
    }
    region = provider_region(plan)
    live = _refreshed(plan)
    applied = {(r.address, r.deposed): tags_of(r.before) for r in drifted_resources(plan)}
    planned = []
    for r in planned_resources:
        if r.type in {FLEET, GROUP}:
            now = live.get((r.address, r.deposed)) or r.before
            fleet = _fleet(r, templates.get(r.module), region, now)
            tags = applied.get((r.address, r.deposed), fleet.tags_before)
            planned.append(replace(fleet, tags_applied=tags))
    return tuple(sorted(planned, key=lambda fleet: (fleet.name, fleet.address)))


def held_ids(plan: TerraformPlanJson) -> frozenset[str]:
    """Return EC2's ids of everything in the state, under any address."""
    before = [*_refreshed(plan).values(), *(resource.before for resource in resources(plan))]
    return frozenset(str(attributes["id"]) for attributes in before if attributes.get("id"))


def provider_region(plan: TerraformPlanJson) -> str:
    """Return the Region of the root's AWS provider, empty when only the environment has it."""
    configured = _at(plan, "configuration", "provider_config", "aws", "expressions", "region")
    if not isinstance(configured, Mapping):
        return ""
    if "constant_value" in configured:
        return str(configured["constant_value"])
    for reference in configured.get("references", []):
        name = str(reference).removeprefix("var.")
        value = _at(plan, "variables", name, "value")
        if isinstance(value, str):
            return value
    return ""


def root_cluster(plan: TerraformPlanJson) -> str:
    """Return the cluster of a rendered root module; empty for one without that variable."""
    return str(_at(plan, "variables", "cluster_name", "value") or "")


def drifted_resources(plan: TerraformPlanJson) -> tuple[PlannedResource, ...]:
    """Return what the refresh found changed: `before` is the state, `after` what exists now."""
    return resources({"resource_changes": plan.get("resource_drift", [])})


def region_elsewhere(plan: TerraformPlanJson, resource: PlannedResource) -> str:
    """Return the Region in which the state has it, when the root's provider is of another one.

    Terraform looks for it in the wrong Region then, and drops it from the state as gone. Empty for
    what is neither a fleet nor a launch template, and where the plan does not say both Regions.
    """
    here, there = provider_region(plan), region_of(resource.before)
    return (
        there if resource.type in {FLEET, GROUP, LAUNCH_TEMPLATE} and here and there != here else ""
    )


def _refreshed(plan: TerraformPlanJson) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return attributes by address and deposed key as the plan's own refresh found them.

    `before` is not enough: for a resource that left the configuration it has the stored state, in
    which a fleet that was drained since would still have its capacity.
    """
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    pending = [mapping(_at(plan, "prior_state", "values", "root_module"))]
    while pending:
        module = pending.pop()
        pending += [mapping(child) for child in module.get("child_modules", [])]
        for entry in module.get("resources", []):
            key = str(entry.get("address", "")), str(entry.get("deposed_key", ""))
            found[key] = mapping(entry.get("values"))
    return found


def _resource(entry: Mapping[str, Any]) -> PlannedResource:
    change = entry.get("change") or {}
    return PlannedResource(
        address=str(entry.get("address", "")),
        module=str(entry.get("module_address", "")),
        type=str(entry.get("type", "")),
        step=_step(change.get("actions") or ()),
        before=mapping(change.get("before")),
        after=mapping(change.get("after")),
        reason=str(entry.get("action_reason", "")),
        deposed=str(entry.get("deposed") or ""),
        importing=str(mapping(change.get("importing")).get("id") or ""),
        replaced_for=_attribute_names(change.get("replace_paths") or ()),
    )


def _attribute_names(paths: Sequence[Any]) -> tuple[str, ...]:
    """Return names such as `launch_template_config.override`, without paths' indexes."""
    steps = ([s for s in path if isinstance(s, str)] for path in paths if isinstance(path, list))
    return tuple(sorted({".".join(names) for names in steps if names}))


def _step(actions: Sequence[str]) -> Step:
    if set(actions) == {"create", "delete"}:
        return "replace"
    known: tuple[Step, ...] = ("create", "update", "delete", "forget", "read")
    # An action that this program does not know must not count as no change.
    return next(
        (step for step in known if step in actions), "no-op" if _idle(actions) else "update"
    )


def _idle(actions: Sequence[str]) -> bool:
    return not actions or list(actions) == ["no-op"]


def _fleet(
    resource: PlannedResource,
    template: PlannedResource | None,
    region: str,
    live: Mapping[str, Any],
) -> PlannedFleet:
    before, after = resource.before, resource.after
    shown = after or before
    tags = tags_of(after) or tags_of(before)
    is_group = resource.type == GROUP
    key = _key(resource)
    # An imported group may have no `fleet` tag.
    name = tags.get("fleet") or (key if is_group else "") or resource.address
    changed = list(resource.changed)
    if template is not None:
        changed += [f"launch_template.{name}" for name in template.changed]
    return PlannedFleet(
        name=name,
        address=resource.address,
        step=resource.step,
        fleet_id=str(before.get("id") or ""),
        region=region_of(before) or region_of(after) or region,
        capacity_before=_capacity(live) if before else None,
        capacity_after=_capacity_after(after, live),
        spot=_is_spot(shown),
        tags_before=tags_of(before),
        tags_after=tags_of(after),
        changed=tuple(changed),
        importing=bool(resource.importing),
        key=key,
        replaced_for=resource.replaced_for,
        template_name=str(template.after.get("name") or "") if template else "",
        ami_before=str(template.before.get("image_id") or "") if template else "",
        ami_after=str(template.after.get("image_id") or "") if template else "",
        instance_types=_instance_types(shown),
        terminates_instances=bool(before.get("terminate_instances")),
        provider="asg" if is_group else "ec2-fleet",
    )


def region_of(attributes: Mapping[str, Any]) -> str:
    """Return the Region of the ARN (`arn:aws:ec2:us-west-2:…`), else that of provider 6."""
    parts = str(attributes.get("arn") or "").split(":")
    return parts[3] if len(parts) > 5 else str(attributes.get("region") or "")


def _key(resource: PlannedResource) -> str:
    """Return the key of a fleet or group in the rendered root module; empty for anything else."""
    found = _KEY.search(resource.module)
    return found[1] if found else ""


def _capacity_after(after: Mapping[str, Any], live: Mapping[str, Any]) -> int | None:
    """Return the target after an update: a group's maximum lowers its desired capacity."""
    capacity, most = _capacity(after), after.get("max_size")
    if capacity is None or not isinstance(most, int):
        return capacity
    return min(max(capacity, _capacity(live) or 0), most)


def _capacity(attributes: Mapping[str, Any]) -> int | None:
    if "desired_capacity" in attributes:
        desired = attributes["desired_capacity"]
        return desired if isinstance(desired, int) else None
    value = _first(attributes.get("target_capacity_specification")).get("total_target_capacity")
    return value if isinstance(value, int) else None


def _is_spot(attributes: Mapping[str, Any]) -> bool | None:
    if "mixed_instances_policy" in attributes:
        policy = _first(attributes["mixed_instances_policy"])
        share = _first(policy.get("instances_distribution")).get(_ON_DEMAND)
        return share is not None and share != 100
    kind = _first(attributes.get("target_capacity_specification")).get(
        "default_target_capacity_type"
    )
    return None if kind is None else kind == "spot"


def _instance_types(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    policy = _first(attributes.get("mixed_instances_policy"))
    template = attributes.get("launch_template_config") or policy.get("launch_template")
    overrides = _first(template).get("override") or []
    found = {str(mapping(entry).get("instance_type") or "") for entry in overrides}
    return tuple(sorted(found - {""}))


def tags_of(attributes: Mapping[str, Any]) -> Labels:
    """Return the tags of a resource: a map, or the blocks of a group."""
    blocks = [mapping(each) for each in attributes.get("tag") or ()]
    tags = {str(block.get("key")): block.get("value") for block in blocks}
    tags |= mapping(attributes.get("tags"))
    return FrozenMap({str(k): str(v) for k, v in tags.items()}) if tags else NO_LABELS


def _first(blocks: Any) -> Mapping[str, Any]:
    return mapping(blocks[0]) if isinstance(blocks, list) and blocks else {}


def _is_empty(value: Any) -> bool:
    """Return whether a value is empty: providers may turn an absent list into an empty one."""
    return value is None or value in ("", [], {})


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = mapping(value).get(key)
    return value

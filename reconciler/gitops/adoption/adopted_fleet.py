"""Describes live fleets as entries of a sector config; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from reconciler.config.fleet_name import fleet_name, lifecycle_of
from reconciler.config.rules.labels import OURS
from reconciler.config.sizes import BUILT_IN_SIZES
from reconciler.gitops.adoption.group_node_tags import node_tag_notes, with_node_tags
from reconciler.gitops.adoption.group_variables import group_tag_variables, group_variables
from reconciler.gitops.adoption.identity import (
    Identity,
    is_module_made,
    module_tags,
    reference_variables,
    tag_variables,
)
from reconciler.gitops.adoption.notes import behaviour_notes, notes_of, unmanaged_because
from reconciler.gitops.adoption.overrides import override_variables
from reconciler.gitops.adoption.sizes import (
    Catalogue,
    built_in_kind,
    guessed_kind,
    own_size_of,
    unknown_types,
)
from reconciler.gitops.adoption.template import template_variables, user_data_of
from reconciler.model.fleet_description import FleetDescription, LaunchTemplateDescription
from reconciler.records.user_data import FirstBoot, read_boot

SHARED: Final = "it shares its launch template with another group or fleet"
FOR_PLANNING: Final = ("node_labels", "node_taints", "private_subnet_ids")
"""Variables that describe new nodes, for fleets whoever made them."""
_REQUIREMENTS: Final = "InstanceRequirements"
_EMPTY_TEMPLATE: Final = LaunchTemplateDescription(id="", name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedFleet:
    """Describes one fleet or group that is being adopted, as an entry of a sector config."""

    sector: str
    kind: str
    entry: Mapping[str, Any]
    """The fleet's own keys as the config writes them; `size` first."""
    terraform: Mapping[str, Any] = field(default_factory=dict)
    """Its module variables."""
    types: tuple[str, ...] = ()
    """Instance types that it may launch, in its own order."""
    own_size: Mapping[str, Any] | None = None
    """The entry of `sizes` for its size; None: a built-in size."""
    fleet_id: str = ""
    template_id: str = ""
    counts_nodes: bool = True
    """Whether its target counts nodes; the capacity loop sizes no other."""
    has_template: bool = False
    """Whether the launch template is imported into the Terraform state too."""
    notes: tuple[str, ...] = ()
    """What could not be carried over, one sentence each."""

    @property
    def name(self) -> str:
        """Return its name in the config."""
        entry = self.entry
        return fleet_name(self.sector, entry["size"], entry.get("zone"), entry.get("lifecycle"))


def entry_types(kind: str, size: str, types: tuple[str, ...]) -> dict[str, Any]:
    """Return `instance_types` of an entry with a built-in size; empty where they are the size's."""
    built_in = BUILT_IN_SIZES.get((kind, size))
    other = built_in is not None and types != built_in.instance_types
    return {"instance_types": list(types)} if other else {}


def fleet_found(
    fleet: FleetDescription,
    catalogue: Catalogue,
    kinds: Mapping[str, str],
    *,
    cluster: str,
    shared: bool = False,
) -> AdoptedFleet | str:
    """Return a fleet as an entry, or why it cannot be one.

    Args:
        fleet: The fleet.
        catalogue: What instance types offer.
        kinds: Kind by sector, where it is known; for a fleet whose tags name none.
        cluster: The EKS cluster's name.
        shared: Whether another fleet or group launches from its launch template.
    """
    types = _types(fleet)
    unfit = _why_not_describable(fleet, types)
    if unfit:
        return unfit
    tags = fleet.tags
    sector, size = tags["sector"], tags["size"]
    kind = known_kind(fleet) or kinds.get(sector) or guessed_kind(types, catalogue)
    zone, lifecycle = _zone_and_lifecycle(fleet, sector, size)
    own_size = own_size_of(kind, size, types, catalogue)
    adopted_fleet = AdoptedFleet(
        sector=sector,
        kind=kind,
        entry={
            "size": size,
            **({"lifecycle": lifecycle} if lifecycle else {"spot": fleet.spot}),
            **({"zone": zone} if zone else {}),
            **entry_types(kind, size, types),
        },
        types=types,
        own_size=own_size,
        fleet_id=fleet.id,
        notes=unknown_types(own_size, types, catalogue),
    )
    boot = read_boot(user_data_of(fleet.template or _EMPTY_TEMPLATE) or "")
    reason = unmanaged_because(fleet, cluster) or (SHARED if shared else "")
    if reason:
        return _left_to_others(adopted_fleet, fleet, boot, reason)
    return managed(adopted_fleet, fleet, boot, cluster)


def managed(
    found: AdoptedFleet, fleet: FleetDescription, boot: FirstBoot, cluster: str
) -> AdoptedFleet:
    """Return a fleet for the Terraform state, with all variables that keep it as it is."""
    template = fleet.template or _EMPTY_TEMPLATE
    name = {
        "cluster": cluster,
        "fleet": found.name,
        "sector": found.sector,
        "size": found.entry["size"],
        "kind": found.kind,
    }
    identity = Identity(**name, spot=fleet.spot, is_group=fleet.group is not None)
    nodes = boot if fleet.group is None else with_node_tags(boot, fleet.tags)
    # The module would write what only the tags say into the user data of the next nodes.
    made_here = is_module_made(template, identity) and boot.ami_type is not None and nodes == boot
    variables = {
        **_node_variables(fleet, nodes),
        **(
            override_variables(fleet, found.entry.get("zone", ""))
            if fleet.group is None
            else group_variables(fleet)
        ),
        **tag_variables(fleet, identity),
        **template_variables(template, boot.ami_type or "", own_tags=module_tags(fleet, identity)),
        **reference_variables(fleet, identity),
        **({} if made_here else {"user_data": user_data_of(template) or ""}),
    }
    notes = notes_of(fleet, boot, variables, identity)
    if fleet.group is not None:
        size = found.own_size or {}
        variables |= group_tag_variables(fleet, identity, size, variables)
        notes += node_tag_notes(boot, fleet.tags, size)
    return replace(
        found,
        terraform=variables,
        fleet_id=fleet.id,
        template_id=template.id,
        has_template=True,
        notes=(*notes, *found.notes),
    )


def group_taken_over(found: AdoptedFleet, group: FleetDescription, cluster: str) -> AdoptedFleet:
    """Return a group as an entry that Terraform makes; as it was found where the module cannot.

    Args:
        found: Its entry as one made by others.
        group: What Terraform needs to know of it.
        cluster: The EKS cluster's name.
    """
    unfit = group.group.unfit if group.group is not None else ""
    boot = read_boot(user_data_of(group.template or _EMPTY_TEMPLATE) or "")
    reason = unfit or unmanaged_because(group, cluster)
    if reason:
        return group_left(found, reason)
    entry = {key: value for key, value in found.entry.items() if key != "managed"}
    least = entry.get("min_capacity")
    note = (
        f"its MinSize stays {least}: Auto Scaling keeps as many instances, whatever min_capacity"
        " says; set it to 0 before the group is to go"
    )
    notes = (*((note,) if least else ()), *found.notes)
    entry["spot"] = group.spot
    return managed(replace(found, entry=entry, notes=notes), group, boot, cluster)


def group_left(found: AdoptedFleet, reason: str) -> AdoptedFleet:
    """Return a group that stays with its maker, with the reason."""
    return replace(found, notes=(_left_because(found, reason), *found.notes))


def _left_because(found: AdoptedFleet, reason: str) -> str:
    sized = (
        "the capacity loop sizes it, and whoever made it continues to change it"
        if found.counts_nodes
        else "the capacity loop does not size it until its target counts nodes (no weights, no"
        " vCPUs or memory), and no pod gets a new node there"
    )
    return f"stays out of Terraform (managed: false), as it is: {reason}; {sized}"


def _left_to_others(
    found: AdoptedFleet, fleet: FleetDescription, boot: FirstBoot, reason: str
) -> AdoptedFleet:
    """Return a fleet that is sized here and stays out of Terraform, with what planning needs."""
    subnets = override_variables(fleet, found.entry.get("zone", ""))
    known = {**_node_variables(fleet, boot), **subnets}
    return replace(
        found,
        entry={**found.entry, "managed": False},
        terraform={key: known[key] for key in FOR_PLANNING if key in known},
        notes=(_left_because(found, reason), *behaviour_notes(fleet, managed=False), *found.notes),
    )


def _node_variables(fleet: FleetDescription, boot: FirstBoot) -> dict[str, Any]:
    """Return what user data and fleet say of its nodes, without the module's defaults."""
    found = {
        "ami_type": boot.ami_type if boot.ami_type != "AL2023" else None,
        "spot_allocation_strategy": _unless_default(_strategy(fleet), "price-capacity-optimized"),
        "node_labels": {k: v for k, v in boot.labels.items() if k not in OURS},
        "node_taints": [dict(taint) for taint in boot.taints if not _is_lifecycle(taint, fleet)],
        **boot.variables,
    }
    if any(_is_lifecycle(taint, fleet) for taint in boot.taints):
        found["on_demand_prefer_no_schedule_taint"] = True
    return {key: value for key, value in found.items() if value}


def known_kind(fleet: FleetDescription) -> str:
    """Return the kind in its tags, or of its built-in size; empty when neither gives one."""
    return fleet.tags.get("kind") or built_in_kind(fleet.tags.get("size", ""), _types(fleet))


def _types(fleet: FleetDescription) -> tuple[str, ...]:
    if _REQUIREMENTS in fleet.other_override_keys:
        return ()
    template = fleet.template or _EMPTY_TEMPLATE
    return fleet.instance_types or tuple(filter(None, [template.instance_type]))


def _why_no_types(fleet: FleetDescription) -> str:
    if _REQUIREMENTS in fleet.other_override_keys:
        return "it chooses them by attributes (InstanceRequirements): name the types instead"
    return "give describe-launch-template-versions"


def _why_not_describable(fleet: FleetDescription, types: tuple[str, ...]) -> str | None:
    """Return why no entry can describe a fleet; None when one can."""
    if not fleet.tags.get("sector") or not fleet.tags.get("size"):
        return "its tags name no sector and size"
    if not types:
        return f"no instance types are known of it: {_why_no_types(fleet)}"
    if fleet.counted_unit or fleet.weighted:
        counted = fleet.counted_unit or "units"
        weights = "" if fleet.counted_unit else "its instance types have weights: "
        return f"{weights}its target counts {counted}, here it would be nodes"
    if fleet.several_templates:
        return "it launches from several launch templates, or versions of one; the module has one"
    if fleet.template is None:
        return "its launch template was not read: give describe-launch-template-versions"
    return None


def _zone_and_lifecycle(fleet: FleetDescription, sector: str, size: str) -> tuple[str, str]:
    """Return zone and lifecycle in a fleet's name; a single subnet does not add the zone."""
    named = fleet.tags.get("fleet", "")
    for zone in ("", *sorted(set(fleet.zones.values()))):
        for lifecycle in ("", lifecycle_of(spot=fleet.spot)):
            if named == fleet_name(sector, size, zone, lifecycle):
                return zone, lifecycle
    return "", ""


def _strategy(fleet: FleetDescription) -> str:
    """Return the module's name of the allocation strategy; EC2 has two spellings.

    The mixed instances policy of a group states one without spot instances too.
    """
    mixed = fleet.group is not None and fleet.group.mixed
    words = {
        "priceCapacityOptimized": "price-capacity-optimized",
        "capacityOptimized": "capacity-optimized",
        "lowest-price": "lowestPrice",
    }
    text = words.get(fleet.allocation_strategy, fleet.allocation_strategy)
    return text if fleet.spot or mixed else ""


def _is_lifecycle(taint: Mapping[str, str], fleet: FleetDescription) -> bool:
    wanted = {"key": "lifecycle", "value": "OnDemand", "effect": "PreferNoSchedule"}
    return not fleet.spot and dict(taint) == wanted


def _unless_default(value: Any, default: Any) -> Any:
    return None if value == default else value

"""What identifies a fleet and its launch template: names, tags, versions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.config.rules.tags import RESERVED
from reconciler.gitops.drift.live import fleet_tags
from reconciler.model.fleet import NODE_TEMPLATE
from reconciler.model.fleet_description import FleetDescription, LaunchTemplateDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Says how the config names a fleet."""

    cluster: str
    fleet: str
    sector: str
    size: str
    kind: str
    spot: bool
    is_group: bool = False

    @property
    def template_name(self) -> str:
        """Return the module's name for its launch template, unless a variable names it."""
        return f"{self.cluster}-{self.fleet}{'-group' if self.is_group else ''}"

    @property
    def description(self) -> str:
        """Return the module's description of its launch template's versions."""
        return f"Nodes of fleet {self.fleet} in cluster {self.cluster}"


def is_module_made(template: LaunchTemplateDescription, identity: Identity) -> bool:
    """Return whether the module made the template, so that its user data follows from variables."""
    return (template.name, template.description) == (identity.template_name, identity.description)


def module_tags(fleet: FleetDescription, identity: Identity) -> dict[str, str]:
    """Return the tags that the module itself gives fleet, template, instances and volumes."""
    variables = {
        "tags": own_tags(fleet, identity),
        "spot": fleet.spot,
        "node_pool_kind": identity.kind,
        "node_pool_size": identity.size,
        "sector_label": identity.sector,
    }
    return fleet_tags(identity.cluster, identity.fleet, variables)


def own_tags(fleet: FleetDescription, identity: Identity) -> dict[str, str]:
    """Return the fleet's tags other than those that the module sets or reserves."""
    taken = {*RESERVED, f"kubernetes.io/cluster/{identity.cluster}"}
    stated = _stated(fleet.tags).items()
    return {k: v for k, v in stated if k not in taken and not k.startswith(f"{NODE_TEMPLATE}/")}


def tag_variables(fleet: FleetDescription, identity: Identity) -> dict[str, Any]:
    """Return the variables that keep the tags of fleet and template as they are."""
    made, own = module_tags(fleet, identity), own_tags(fleet, identity)
    variables: dict[str, Any] = {"tags": own} if own else {}
    there = _stated(fleet.tags)
    named = not missing_tags(fleet, identity).keys() - {"fleet"}
    if fleet.group is None and there != made and named:
        variables["fleet_tags"] = there
    template = fleet.template.tags if fleet.template else None
    if template is not None and _stated(template) != made:
        variables["launch_template_tags"] = _stated(template)
    return variables


def missing_tags(fleet: FleetDescription, identity: Identity) -> dict[str, str]:
    """Return those tags by which the capacity loop finds the fleet that it does not have.

    Without `fleet` its tags are kept as they are all the same. Terraform must not set these tags:
    `ci plan` refuses a plan that changes which fleet is whose.
    """
    wanted = _identifying(identity).items()
    return {key: value for key, value in wanted if fleet.tags.get(key) != value}


def _identifying(identity: Identity) -> dict[str, str]:
    return {
        "cluster": identity.cluster,
        "fleet": identity.fleet,
        "sector": identity.sector,
        "size": identity.size,
    }


def reference_variables(fleet: FleetDescription, identity: Identity) -> dict[str, Any]:
    """Return the variables that keep the template's name and the fleet's reference to it."""
    template = fleet.template
    if template is None:
        return {}
    variables: dict[str, Any] = {}
    if template.name != identity.template_name:
        variables["launch_template_name"] = template.name
    if template.description != identity.description:
        variables["launch_template_description"] = template.description
    if fleet.template_version != "$Latest":
        variables["launch_template_version"] = fleet.template_version
    if fleet.template_by_name:
        variables["launch_template_by_name"] = True
    return variables


def _stated(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(tags.items()) if not key.startswith("aws:")}

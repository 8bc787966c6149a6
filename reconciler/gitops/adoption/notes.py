"""What a person must know of an adopted fleet: what could not be kept, and what follows. Pure."""

import re
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any, Final

from reconciler.gitops.adoption.identity import Identity, missing_tags
from reconciler.gitops.adoption.template import (
    cpu_credits,
    tags_as_mapping,
    user_data_of,
    without_a_variable,
)
from reconciler.model.fleet_description import FleetDescription, LaunchTemplateDescription
from reconciler.records.untrusted_json import mappings
from reconciler.records.user_data import FirstBoot
from reconciler.telemetry.scrubbing import scrub

_SECRET: Final = re.compile(
    r"(?i)\w*(?:secret|token|passw|credential|private_?key|api_?key|access_?key)\w*['\"]?"
    r"\s*[=:]\s*['\"]?(?![\s$'\"])"
)
"""A name of a secret that is given a literal value."""
_LOOKED_UP: Final = re.compile(r"(?<=[=:])\s*['\"]?[$`]\S*")
"""A value that a shell looks up at boot, such as a session token of IMDS; it is stored nowhere."""


def unmanaged_because(fleet: FleetDescription, cluster: str) -> str | None:
    """Return why a fleet cannot enter the Terraform state as it is; None when it can.

    Args:
        fleet: The fleet, or the group.
        cluster: The EKS cluster's name.
    """
    return next(_hindrances(fleet, cluster), None)


def _hindrances(fleet: FleetDescription, cluster: str) -> Iterator[str]:
    template = fleet.template
    if template is None:
        yield "its launch template is not known"
        return
    yield from _other_clusters(fleet, template, cluster)
    unknown = {
        "launch template sets": without_a_variable(template),
        "overrides set": fleet.other_override_keys,
    }
    for where, keys in unknown.items():
        if keys:
            yield (
                f"its {where} {', '.join(keys)}, which the module has no variable for; new nodes"
                " would come without"
            )
    if fleet.group is None and str(template.data.get("ImageId", "")).startswith("resolve:"):
        yield (
            f"its launch template names its image by a parameter ({template.data['ImageId']}), from"
            " which EC2 launches nodes of Auto Scaling groups only; name an image id there"
        )
    if template.version != template.latest_version:
        yield (
            f"it launches from version {template.version} of its launch template, whose newest is"
            f" {template.latest_version}; Terraform knows the newest only, so new nodes would come"
            " from another version"
        )
    user_data = user_data_of(template)
    if user_data is None:
        yield "its user data is not text, so it cannot stand in a config; new nodes would not join"
    elif holds_secret(user_data):
        yield "its user data holds what looks like a secret, which must not stand in a config"


def _other_clusters(
    fleet: FleetDescription, template: LaunchTemplateDescription, cluster: str
) -> Iterator[str]:
    for what, tags in (("it", fleet.tags), ("its launch template", template.tags)):
        there = cluster if tags is None else tags.get("cluster", cluster)
        if there != cluster:
            yield (
                f"{what} has the tag cluster={there}, so that ci plan refuses its import"
                f" as another cluster's (cluster/foreign); set that tag to {cluster}, or remove it"
            )
    specified = mappings(template.data.get("TagSpecifications"))
    given = {tags_as_mapping(each.get("Tags")).get("cluster", cluster) for each in specified}
    for there in sorted(given - {cluster}):
        yield (
            f"its launch template gives its nodes or their volumes the tag cluster={there}, another"
            f" cluster's; set that tag to {cluster}, or remove it, in a new version"
        )


def holds_secret(user_data: str) -> bool:
    """Return whether the text holds what looks like a secret, and not only a look-up of one."""
    literal = _LOOKED_UP.sub("$", user_data)
    return scrub(literal) != literal or _SECRET.search(literal) is not None


def notes_of(
    fleet: FleetDescription, boot: FirstBoot, variables: Mapping[str, Any], identity: Identity
) -> tuple[str, ...]:
    """Return notes on a fleet for the Terraform state, each a sentence with its consequence."""
    return (
        *_of_boot(boot, variables),
        *_of_labels(boot, identity, variables),
        *_of_template(fleet, variables),
        *_of_tags(fleet, identity, variables),
        *behaviour_notes(fleet, managed=True),
    )


def _of_boot(boot: FirstBoot, variables: Mapping[str, Any]) -> Iterator[str]:
    if variables.get("user_data"):
        yield (
            "its user data is kept as it is (user_data), in plain text in config and state: look"
            " for secrets before you commit; changes of labels, taints and kubelet settings in the"
            " config will not reach new nodes until you drop user_data"
        )
    elif "user_data" in variables:
        yield "it has no user data, and keeps none: new nodes join only if the image sees to that"
    if boot.ami_type is None and variables.get("user_data"):
        yield (
            "its user data is of no known kind; state ami_type before you drop user_data, or new"
            " nodes will not join"
        )
    if boot.ami_type is None and not {"node_labels", "node_taints"} & set(variables):
        yield (
            "neither user data nor tags say, in a form that is known here, which labels and taints"
            " its nodes have: state them (node_labels, node_taints) if there are any, or plans buy"
            " its nodes for pods that cannot run there, and none for pods that select such a label"
        )
    if boot.ami_type == "AL2":
        yield (
            "its image starts with /etc/eks/bootstrap.sh (ami_type: AL2); to change to an AL2023"
            " image, change ami, set ami_type: AL2023 and drop user_data in one commit, or new"
            " nodes will not join"
        )


def _of_labels(boot: FirstBoot, identity: Identity, variables: Mapping[str, Any]) -> Iterator[str]:
    if "user_data" not in variables:
        return
    wanted = {
        "sector": identity.sector,
        "fleet": identity.fleet,
        "size": identity.size,
        "pool_size": identity.size,
        "kind": identity.kind,
        "lifecycle": "Ec2Spot" if identity.spot else "OnDemand",
    }
    missing = [f"{k}={v}" for k, v in sorted(wanted.items()) if boot.labels.get(k) != v]
    if missing:
        yield (
            f"its user data does not give nodes the labels {', '.join(missing)}, which plans count"
            " on: a pod that selects one of them will have nodes launched here and not bind"
        )


def _of_template(fleet: FleetDescription, variables: Mapping[str, Any]) -> Iterator[str]:
    version = variables.get("launch_template_version", "")
    if version == "$Default":
        yield (
            "it launches from $Default: a later change of the template makes a version that new"
            " nodes do not come from until you make it the default or set"
            " launch_template_version: $Latest"
        )
    elif version:
        yield (
            f"it launches from version {version}: a later change of the template makes a new"
            " version that new nodes do not come from until you set launch_template_version:"
            " $Latest"
        )
    if str(variables.get("ami", "")).startswith("resolve:"):
        yield (
            f"its image is what the parameter {variables['ami'].removeprefix('resolve:ssm:')} names"
            " at each launch: new nodes can come with another image without a commit"
        )
    elif "ami" not in variables:
        yield "its launch template names no image, so Terraform cannot take it over: state ami"
    if not {"instance_profile_name", "instance_profile_arn"} & set(variables):
        yield "it has no instance profile: new nodes cannot join an EKS cluster"
    options = variables.get("metadata_options")
    if options is not None and options.get("http_tokens") != "required":
        yield (
            "IMDSv1 stays allowed on its nodes (metadata_options): a pod can take the node's role;"
            " drop the key for IMDSv2 with one hop, once nothing on the nodes needs more"
        )
    if any(volume.get("encrypted") is not True for volume in variables.get("volumes", ())):
        yield (
            "its volumes are not stated to be encrypted (volumes): the account's default decides;"
            " drop the key for one encrypted volume"
        )
    if fleet.template is not None and cpu_credits(fleet.template.data) not in {
        None,
        variables.get("cpu_credits"),
    }:
        yield (
            f"the CPU credits of its launch template ({cpu_credits(fleet.template.data)}) are not"
            " seen by Terraform, since the template names no burstable type: they stay until the"
            " template's first change; new nodes of burstable types then have their type's default"
            " unless you state cpu_credits"
        )
    if fleet.template is not None and fleet.template.tags is None:
        yield (
            "the tags of its launch template were not read (give describe-launch-templates): the"
            " first plan sets those of the module"
        )


def _of_tags(
    fleet: FleetDescription, identity: Identity, variables: Mapping[str, Any]
) -> Iterator[str]:
    missing = {} if fleet.group is not None else missing_tags(fleet, identity)
    if missing:
        tags = " ".join(quote(f"Key={key},Value={value}") for key, value in missing.items())
        yield (
            f"it does not have the tags by which the capacity loop finds it, and `ci plan` refuses"
            f" to set them: aws ec2 create-tags --resources {quote(fleet.id)} --tags {tags}"
            f"{_in_config(variables)}"
        )
    data = fleet.template.data if fleet.template else {}
    tagged = [
        tags_as_mapping(mapping.get("Tags"))
        for mapping in mappings(data.get("TagSpecifications"))
        if mapping.get("ResourceType") == "instance"
    ]
    # Nodes of a group are ended by a right to the group.
    named = any(tags.get("cluster") == identity.cluster for tags in tagged)
    if fleet.group is None and not named:
        yield (
            f"its launch template does not give instances the tag cluster={identity.cluster}: the"
            " shipped IAM policy will not let the capacity loop end its nodes; drop"
            " tag_specifications, or add the tag there and to the instances that run"
        )
    template_tags = variables.get("launch_template_tags")
    if template_tags is not None and template_tags.get("cluster") != identity.cluster:
        yield (
            f"its launch template lacks the tag cluster={identity.cluster}: the shipped IAM policy"
            " will not let the pipeline make new versions of it until the tag is added"
        )


def _in_config(variables: Mapping[str, Any]) -> str:
    """Return that the config has to have the tags as well, if it states all tags of the fleet."""
    return "; then state them in its fleet_tags, too" if "fleet_tags" in variables else ""


def behaviour_notes(fleet: FleetDescription, *, managed: bool) -> Iterator[str]:
    """Yield what EC2 does with a fleet by itself, which the capacity loop meets.

    Args:
        fleet: The fleet.
        managed: Whether Terraform is to have it, and may make another in its place.
    """
    if fleet.on_demand_target and fleet.spot_target:
        kind = "spot" if fleet.spot else "on-demand"
        yield (
            f"{fleet.on_demand_target} of its target are on-demand and {fleet.spot_target} spot;"
            f" here all its nodes count as {kind}: prices, the lifecycle label and plans take them"
            " for that"
        )
    if fleet.ends_excess:
        yield (
            "EC2 ends its instances when its target falls, without a drain; the capacity loop sets"
            " no-termination with its first change"
        )
    if fleet.replaces_unhealthy:
        yield (
            "EC2 replaces its unhealthy instances by itself, without a drain; that cannot be"
            f" changed on a living fleet{', a new one would not have it' if managed else ''}"
        )
    if fleet.rebalances_capacity:
        ends = "; EC2 ends the old one by itself some time later (launch-before-terminate)"
        new = (
            "; the module has no variable for it, so a new fleet would not have it, and the"
            " capacity loop asks for such nodes itself"
        )
        yield (
            "EC2 launches a node in place of one that it recommends to leave (capacity"
            f" rebalancing): plans wait for the new one{ends if fleet.ends_replaced else ''}"
            f"{new if managed else ''}"
        )
    if fleet.spot and fleet.interruption_behavior != "terminate":
        yield (
            f"EC2 lets its interrupted spot instances {fleet.interruption_behavior} and starts them"
            " again later; that cannot be changed on a living fleet"
            f"{', a new one terminates them' if managed else ''}"
        )
    if fleet.valid_until:
        yield f"EC2 ends its request on {fleet.valid_until}: no nodes are replaced or added then"

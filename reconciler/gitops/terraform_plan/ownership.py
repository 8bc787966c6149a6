"""To which cluster and fleet a plan's resources belong, by their tags; pure."""

from collections.abc import Iterator
from shlex import quote

from reconciler.gitops.terraform_plan.finding import Finding, refusal, warning
from reconciler.gitops.terraform_plan.planned import (
    FLEET,
    GROUP,
    LAUNCH_TEMPLATE,
    PlannedFleet,
    PlannedResource,
    fleets,
    resources,
    root_cluster,
    tags_of,
)
from reconciler.ports.terraform import TerraformPlanJson

IDENTITY_TAGS = ("cluster", "fleet")
"""The capacity loop finds fleets by these."""


def ownership(plan: TerraformPlanJson) -> Iterator[Finding]:
    """Yield what a plan would take from another cluster, or from the capacity loop."""
    yield from _other_cluster(plan)
    root = root_cluster(plan)
    for fleet in fleets(plan):
        if fleet.step == "update":
            yield from _identity(fleet, root)


def _other_cluster(plan: TerraformPlanJson) -> Iterator[Finding]:
    """Yield what carries another cluster's tag, and would be imported, changed, ended or made.

    A file of import blocks names anything in the account, and ids say nothing to a reviewer. To let
    go of it is no harm, nor to give the root's own launch template the root's own tag.
    """
    root = root_cluster(plan)
    for resource in resources(plan):
        there, later = (tags_of(tags).get("cluster") for tags in (resource.before, resource.after))
        here = root or later
        touched = resource.importing or (resource.is_changed and resource.step != "forget")
        message = ""
        if there and there != here and not _gets_own_tag(resource, root):
            cure = "take it out of imports.tf"
            if not resource.importing:
                cure = f"name {there} as the cluster again; or, if it is of {here}, set that tag"
                cure += f" to {here} in AWS and in the config; or let go of it: terraform state rm"
                cure += f" '{resource.address}'"
            named = resource.importing or resource.before.get("id")
            message = f"{named} has the tag cluster={there}, and this root module is of {here}: "
            message += cure
        elif later and later != here:
            message = (
                f"would have the tag cluster={later}, and this root module is of {here}: state"
            )
            message += f" cluster: {here} where the config states its tags"
        if resource.type in {FLEET, GROUP, LAUNCH_TEMPLATE} and touched and here and message:
            yield refusal("cluster/foreign", resource.address, message)


def _gets_own_tag(resource: PlannedResource, root: str) -> bool:
    """Return whether a launch template of the state gets the tag of the root's cluster in place."""
    in_state = resource.step == "update" and not resource.importing
    becomes = tags_of(resource.after).get("cluster")
    return bool(root) and resource.type == LAUNCH_TEMPLATE and in_state and becomes == root


def _identity(fleet: PlannedFleet, root: str) -> Iterator[Finding]:
    """Yield changes of the tags by which the capacity loop finds a fleet.

    A plan may give a fleet back what was changed by hand: the state still has the tag as the last
    apply left it. Its own name alone would not do, as a fleet that was moved within the state to
    the name of another has that name too, and its nodes carry the old one.
    """
    own = {"cluster": root, "fleet": fleet.key}
    for key in IDENTITY_TAGS:
        before, after = fleet.tags_before.get(key, ""), fleet.tags_after.get(key, "")
        if before == after:
            continue
        is_own = bool(after) and after == (own[key] or after)
        if is_own and after == fleet.tags_applied.get(key):
            now = f"is {before}" if before else "is gone"
            yield warning(
                "fleet/identity-restored",
                fleet.name,
                f"the tag {key} was changed outside of Terraform: it {now}, and this plan sets it"
                f" to {after} again. If the role that applies may not set it:"
                f" {_tagging(fleet, key, after)}",
            )
        elif is_own:
            change = f"from {before} to {after}" if before else f"to {after}"
            yield refusal(
                "fleet/identity",
                fleet.name,
                f"the tag {key} would change {change}, and the state does not show that it ever was"
                f" {after}: a renamed fleet is a new one and the removal of the old. If it was"
                f" changed by hand: {_tagging(fleet, key, after)}",
            )
        else:
            yield refusal(
                "fleet/identity",
                fleet.name,
                f"the tag {key} would change from {before or 'none'} to {after or 'none'}; the"
                " capacity loop would lose the fleet",
            )


def _tagging(fleet: PlannedFleet, key: str, value: str) -> str:
    """Return the command with which a person sets a tag of a fleet or group."""
    region = f"--region {quote(fleet.region)} " if fleet.region else ""
    if fleet.provider == "asg":
        tag = f"ResourceId={fleet.fleet_id},ResourceType=auto-scaling-group,Key={key},Value={value}"
        tag = quote(f"{tag},PropagateAtLaunch=false")
        return f"aws autoscaling create-or-update-tags {region}--tags {tag}"
    tag = quote(f"Key={key},Value={value}")
    return f"aws ec2 create-tags {region}--resources {quote(fleet.fleet_id)} --tags {tag}"

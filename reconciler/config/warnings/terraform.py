"""Warnings about what is missing or ignored when the config is rendered."""

from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import (
    MANAGED_NODE_GROUP,
    NO_BACKEND,
    REGION_NOT_RENDERED,
    TAGS_WITHOUT_CLUSTER,
    TAGS_WITHOUT_FLEET,
    quoted,
)
from reconciler.config.module.fleet import rendered_fleets
from reconciler.config.module.rendering import (
    missing_variables,
    unrendered_regions,
    wants_rendering,
)
from reconciler.config.rules.document import Location
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem


def no_block(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each module variable that is missing, if nothing is rendered yet."""
    if not wants_rendering(subject.config):
        fleets = tuple(rendered_fleets(subject.document, subject.config))
        yield from missing_variables(subject.document, fleets, "warning")


def no_backend(subject: Subject) -> Iterator[Problem]:
    """Yield a warning if no backend is stated.

    Terraform's state is then on a local disk: a run on another machine creates everything again.
    """
    if wants_rendering(subject.config) and subject.config.terraform.backend is None:
        message = (
            "no backend: Terraform's state would stay on the machine that applies"
            " (terraform.backend names a bucket)"
        )
        yield subject.warning(NO_BACKEND, ("terraform",), message)


def groups_of_eks(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each rendered group with the name of a managed node group's."""
    for written in subject.fleets if wants_rendering(subject.config) else ():
        fleet = written.fleet
        name = fleet.entry.auto_scaling_group or ""
        if fleet.is_rendered and name.startswith("eks-"):
            message = (
                f"{quoted(name)} looks like the group of an EKS managed node group, which EKS"
                " makes: state managed: false, or Terraform would make a group of this name"
            )
            location = (*written.node.location, "auto_scaling_group")
            yield subject.warning(MANAGED_NODE_GROUP, location, message)


def tags_without_cluster(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each list of tags without the tag that the shipped policies require.

    Instances of a group are ended by a right to the group.
    """
    rendered = rendered_fleets(subject.document, subject.config)
    for written in rendered if wants_rendering(subject.config) else ():
        cluster = subject.document.cluster
        specified = written.value("tag_specifications")
        of_instances = [e.tags for e in specified or () if e.resource_type == "instance"]
        template = written.value("launch_template_tags")
        lacking = {
            "tag_specifications": specified is not None
            and not written.fleet.is_group
            and not any(tags.get("cluster") == cluster for tags in of_instances),
            "launch_template_tags": template is not None and template.get("cluster") != cluster,
        }
        for key, lacks in lacking.items():
            if lacks and cluster:
                message = f"{key} lacks cluster: {cluster}{_FOLLOWS[key]}"
                yield subject.warning(TAGS_WITHOUT_CLUSTER, written.place_of(key), message)


_FOLLOWS: Final = {
    "tag_specifications": " for instances, and by the shipped IAM policy the capacity loop may end"
    " only instances with it",
    "launch_template_tags": ", and by the shipped IAM policy the pipeline may change only templates"
    " with it",
}


def tags_without_fleet(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each EC2 Fleet whose stated tags do not have its name.

    The capacity loop knows a fleet by the tag `fleet`, and does not see one without it.
    """
    rendered = rendered_fleets(subject.document, subject.config)
    for written in rendered if wants_rendering(subject.config) else ():
        tags, name = written.value("fleet_tags"), written.fleet.name
        if tags is not None and not written.fleet.is_group and tags.get("fleet") != name:
            message = f"fleet_tags lacks fleet: {name}, by which the capacity loop knows the fleet"
            yield subject.warning(TAGS_WITHOUT_FLEET, written.place_of("fleet_tags"), message)


def regions_without_a_root(subject: Subject) -> Iterator[Problem]:
    """Yield a warning if fleets inherit top-level Regions for which nothing is rendered."""
    others = unrendered_regions(subject.config)
    if others and wants_rendering(subject.config):
        message = (
            f"fleets are not rendered for {', '.join(others)}: they are missing there unless"
            " something else makes them (terraform.by_region states their images and subnets)"
        )
        location: Location = ("regions", subject.config.regions.index(others[0]))
        yield subject.warning(REGION_NOT_RENDERED, location, message)

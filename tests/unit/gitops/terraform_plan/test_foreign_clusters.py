"""A plan takes, changes and ends nothing of another cluster, however it came into the plan."""

from typing import Any

import pytest

from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard
from tests.unit.gitops.plans import fleet_attributes, group_attributes, plan, resource

THEIRS = {"cluster": "other", "fleet": "web-large"}
OURS = {"cluster": "analytics", "fleet": "primary-small"}
OF_ANALYTICS = {"cluster_name": {"value": "analytics"}}
ALLOWED = GuardPolicy(allow_destroy=frozenset({"web-large", "primary-small"}))


def attributes(kind: str, tags: dict[str, str]) -> dict[str, Any]:
    """A drained resource of this kind with these tags."""
    if kind == "aws_ec2_fleet":
        return fleet_attributes(target=0, tags=tags)
    if kind == "aws_autoscaling_group":
        return group_attributes(target=0, tag=[{"key": k, "value": v} for k, v in tags.items()])
    return {"id": "lt-1", "name": "web-large", "image_id": "ami-1", "tags": tags}


def changed(
    kind: str,
    actions: list[str],
    before: dict[str, str],
    after: dict[str, str],
    importing: str = "",
) -> dict[str, Any]:
    """A plan of a root module of `analytics` that does this to one resource."""
    gone = actions == ["delete"]
    entry = resource(
        kind, actions, attributes(kind, before), None if gone else attributes(kind, after)
    )
    if importing:
        entry["change"]["importing"] = {"id": importing}
    return plan(entry, variables=OF_ANALYTICS)


def refusals(shown: dict[str, Any]) -> set[str]:
    """Codes of what is refused although every fleet may be destroyed."""
    return {each.code for each in guard(shown, ALLOWED) if each.severity == "refused"}


KINDS = ["aws_ec2_fleet", "aws_autoscaling_group", "aws_launch_template"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", [["create", "delete"], ["update"], ["no-op"]])
def test_import_of_another_clusters_resource_is_refused(kind: str, actions: list[str]) -> None:
    """One file of a pull request ended another cluster's launch template, or its fleet."""
    shown = changed(kind, actions, THEIRS, OURS, importing="id-of-theirs")
    found = [each for each in guard(shown, ALLOWED) if each.code == "cluster/foreign"]
    assert len(found) == 1
    assert found[0].severity == "refused"
    assert found[0].message == (
        "id-of-theirs has the tag cluster=other, and this root module is of analytics: take it"
        " out of imports.tf"
    )


def test_import_that_keeps_the_tags_of_another_cluster_is_refused() -> None:
    """`launch_template_tags` would make a template of theirs look like no change at all."""
    shown = changed("aws_launch_template", ["update"], THEIRS, THEIRS, importing="lt-1")
    assert refusals(shown) == {"cluster/foreign"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", [["delete"], ["create", "delete"]])
def test_end_of_what_another_cluster_has_is_refused(kind: str, actions: list[str]) -> None:
    """A name in `allow_destroy` is one of this cluster's fleets; theirs may have the same."""
    shown = changed(kind, actions, THEIRS, OURS)
    assert "cluster/foreign" in refusals(shown)
    (message,) = {
        each.message for each in guard(shown, ALLOWED) if "terraform state" in each.message
    }
    assert "name other as the cluster again; or, if it is of analytics, set that tag" in message
    (address,) = {entry["address"] for entry in shown["resource_changes"]}
    assert message.endswith(f"or let go of it: terraform state rm '{address}'")


@pytest.mark.parametrize("actions", [["forget"], ["no-op"]])
def test_what_is_left_as_it_is_is_not_refused(actions: list[str]) -> None:
    """To let go of another cluster's fleet must stay possible."""
    assert refusals(changed("aws_ec2_fleet", actions, THEIRS, THEIRS)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_replacement_of_what_is_imported_is_refused(kind: str) -> None:
    """What has no tags is not known to be anybody's, and would be gone after the apply."""
    shown = changed(kind, ["create", "delete"], {}, OURS, importing="id-of-somebody")
    assert refusals(shown) == {"import/replace"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [OURS, {**OURS, "team": "data"}])
def test_import_of_what_this_cluster_has_passes(kind: str, before: dict[str, str]) -> None:
    """`reconciler import` and an apply that was cut off lead to such plans."""
    assert refusals(changed(kind, ["update"], before, OURS, importing="ours")) == set()


def test_template_without_a_cluster_tag_may_be_imported() -> None:
    """Templates that people made have no such tag."""
    assert refusals(changed("aws_launch_template", ["update"], {}, OURS, importing="lt-1")) == set()


def test_root_without_the_variable_is_judged_by_its_tags() -> None:
    """A root module that people wrote names its cluster elsewhere."""
    shown = changed("aws_launch_template", ["update"], THEIRS, OURS) | {"variables": {}}
    assert refusals(shown) == {"cluster/foreign"}


@pytest.mark.parametrize("kind", KINDS)
def test_resource_is_not_made_with_the_tag_of_another_cluster(kind: str) -> None:
    """It passed, and then no plan that touched it was ever allowed: no new image, for one."""
    entry = resource(kind, ["create"], None, attributes(kind, THEIRS))
    shown = plan(entry, variables=OF_ANALYTICS)
    assert refusals(shown) == {"cluster/foreign"}
    (message,) = {e.message for e in guard(shown, ALLOWED) if e.code == "cluster/foreign"}
    assert message == (
        "would have the tag cluster=other, and this root module is of analytics: state cluster:"
        " analytics where the config states its tags"
    )


def test_own_template_may_get_the_tag_of_its_cluster() -> None:
    """The very edit that fixes a wrong `launch_template_tags` was refused."""
    kind = "aws_launch_template"
    assert refusals(changed(kind, ["update"], {"cluster": "other"}, OURS)) == set()
    assert refusals(changed(kind, ["update"], OURS, THEIRS)) == {"cluster/foreign"}


def test_own_template_that_keeps_another_clusters_tag_is_reported_with_the_fix() -> None:
    """The message said to name a cluster that was named already."""
    shown = changed("aws_launch_template", ["update"], THEIRS, {**THEIRS, "team": "web"})
    (message,) = {e.message for e in guard(shown, ALLOWED) if e.code == "cluster/foreign"}
    assert "set that tag to analytics in AWS and in the config" in message


@pytest.mark.parametrize("before", [OURS, {"fleet": "primary-small"}])
@pytest.mark.parametrize("kind", KINDS)
def test_end_of_what_this_cluster_has_passes(kind: str, before: dict[str, str]) -> None:
    """What ends has no tags afterwards: no fleet could ever be removed."""
    assert refusals(changed(kind, ["delete"], before, {})) == set()


@pytest.mark.parametrize("kind", ["aws_ec2_fleet", "aws_autoscaling_group"])
def test_fleet_of_another_cluster_is_not_given_the_tag_of_this_one(kind: str) -> None:
    """Its nodes would be nodes of two clusters; only a launch template runs nothing by itself."""
    assert "cluster/foreign" in refusals(changed(kind, ["update"], THEIRS, OURS))


def test_resource_that_was_allowed_by_its_type_is_not_judged_by_its_tags() -> None:
    """Its tags follow rules of the people who allowed it."""
    entry = resource("aws_sqs_queue", ["create"], None, {"tags": THEIRS})
    policy = GuardPolicy(allow_types=frozenset({"aws_sqs_queue"}))
    assert guard(plan(entry, variables=OF_ANALYTICS), policy) == ()

"""What a plan must not do."""

from typing import Any

import pytest

from reconciler.gitops.terraform_plan.finding import refused
from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard, hidden_programs
from tests.unit.gitops.plans import (
    fleet_arn,
    fleet_attributes,
    fleet_change,
    group_attributes,
    group_change,
    plan,
    resource,
    template_change,
)


def codes(shown: dict[str, Any], policy: GuardPolicy | None = None) -> list[tuple[str, str]]:
    """Severity and code of each finding."""
    return [(f.severity, f.code) for f in guard(shown, policy or GuardPolicy())]


@pytest.mark.parametrize(
    "change",
    [
        fleet_change(["create"], target=5),
        fleet_change(["no-op"]),
        fleet_change(["update"], tags={"cluster": "analytics", "fleet": "primary-small", "a": "b"}),
        template_change("ami-1", "ami-2"),
        group_change(["create"]),
        group_change(["update"], max_size=30),
        group_change(["update"], max_size=2),
    ],
)
def test_ordinary_change_passes(change: dict[str, Any]) -> None:
    """A guard that cries wolf is switched off."""
    assert codes(plan(change)) == []


def test_destroyed_fleet_is_refused_and_names_its_nodes() -> None:
    """Deleting a line of YAML must not take down a sector."""
    policy = GuardPolicy(nodes={"fleet-primary-small": ("ip-10-0-0-1", "ip-10-0-0-2")})
    (finding,) = guard(plan(fleet_change(["delete"])), policy)
    assert (finding.severity, finding.code) == ("refused", "fleet/destroy")
    assert "ip-10-0-0-1, ip-10-0-0-2" in finding.message
    assert "allow_destroy" in finding.message


def test_destroyed_group_is_refused_and_names_its_nodes() -> None:
    """Terraform ends every instance of a group that it destroys, with their pods."""
    policy = GuardPolicy(nodes={"analytics-web-small": ("ip-10-0-0-1",)})
    (finding,) = guard(plan(group_change(["delete"])), policy)
    assert (finding.severity, finding.code, finding.where) == (
        "refused",
        "fleet/destroy",
        "web-small",
    )
    assert "target capacity 2; nodes: ip-10-0-0-1" in finding.message
    allowed = GuardPolicy(allow_destroy=frozenset({"web-small"}), nodes=policy.nodes)
    assert codes(plan(group_change(["delete"])), allowed) == [("warning", "fleet/not-drained")]
    drained = plan(group_change(["delete"], target=0))
    assert codes(drained, GuardPolicy(allow_destroy=frozenset({"web-small"}))) == []


def test_group_without_a_fleet_tag_is_known_by_its_key() -> None:
    """One that was imported keeps the tags of whoever made it; allow_destroy must reach it."""
    before = group_attributes(target=0, tag=[])
    gone = plan(resource("aws_autoscaling_group", ["delete"], before, None, key="web-small"))
    assert [finding.where for finding in guard(gone, GuardPolicy())] == ["web-small"]


def test_maximum_below_the_live_capacity_of_a_group_is_refused() -> None:
    """Auto Scaling would end the nodes that are too many, of its own choice and undrained."""
    (finding,) = guard(plan(group_change(["update"], max_size=1)), GuardPolicy())
    assert (finding.severity, finding.code) == ("refused", "fleet/capacity")
    assert "2 would become 1: its maximum would be less" in finding.message


def test_fleet_that_becomes_a_group_of_its_name_is_refused() -> None:
    """The capacity loop knows one fleet of a name: the nodes of the old one would be strangers."""
    gone, made = fleet_change(["delete"], "web-small"), group_change(["create"])
    policy = GuardPolicy(allow_destroy=frozenset({"web-small"}))
    found = codes(plan(gone, made), policy)
    assert ("refused", "fleet/provider") in found
    assert ("refused", "fleet/provider") not in codes(plan(gone), policy)


def test_subnet_that_a_group_loses_is_a_warning() -> None:
    """Auto Scaling ends instances in zones that a group no longer has."""
    change = group_change(["update"], vpc_zone_identifier=["subnet-0aa"])
    (finding,) = guard(plan(change), GuardPolicy())
    assert (finding.severity, finding.code) == ("warning", "group/subnets")
    assert "subnet-0bb" in finding.message


@pytest.mark.parametrize("kept", [False, True])
def test_fleet_in_another_region_than_the_roots_is_refused(kept: bool) -> None:
    """Another home region: Terraform forgets fleets with running nodes, and makes a second set."""
    away = fleet_attributes(arn=fleet_arn("primary-small", "us-east-1"))
    if kept:
        shown = plan(resource("aws_ec2_fleet", ["no-op"], away, away))
    else:
        gone = resource("aws_ec2_fleet", ["delete"], away, None)
        shown = plan(fleet_change(["create"]), resource_drift=[gone])
    (finding,) = guard(shown, GuardPolicy(allow_destroy=frozenset({"primary-small"})))
    assert (finding.severity, finding.code) == ("refused", "fleet/region")
    assert finding.where == "primary-small"
    assert finding.message.startswith("the state has it in us-east-1, and this root module is of")


def test_fleet_that_was_deleted_by_hand_is_made_anew() -> None:
    """It is gone from the Region of its root: an apply is what brings it back."""
    gone = resource("aws_ec2_fleet", ["delete"], fleet_attributes(), None)
    assert codes(plan(fleet_change(["create"]), resource_drift=[gone])) == []


@pytest.mark.parametrize("actions", [["delete", "create"], ["create", "delete"]])
def test_replaced_fleet_is_refused_and_says_why(actions: list[str]) -> None:
    """The provider replaces fleets for harmless-looking edits."""
    (finding,) = guard(plan(fleet_change(actions, type="request")), GuardPolicy())
    assert (finding.severity, finding.code) == ("refused", "fleet/replace")
    assert "type" in finding.message


def test_replacement_names_the_attributes_that_force_it() -> None:
    """Computed attributes change with every replacement and explain nothing."""
    change = fleet_change(["delete", "create"], type="request", arn=None, fleet_state="x")
    override = ["launch_template_config", 0, "override", 1, "instance_type"]
    change["change"]["replace_paths"] = [["type"], override]
    (finding,) = guard(plan(change), GuardPolicy())
    causes = "because of launch_template_config.override.instance_type, type ("
    assert causes in finding.message


def test_approved_destruction_of_a_fleet_with_nodes_is_a_warning() -> None:
    """The reviewer approves it; the apply still waits for the drain."""
    policy = GuardPolicy(allow_destroy=frozenset({"primary-small"}))
    assert codes(plan(fleet_change(["delete"])), policy) == [("warning", "fleet/not-drained")]


def test_approved_destruction_of_a_drained_fleet_passes() -> None:
    """The last step of a removal must be possible."""
    gone = resource("aws_ec2_fleet", ["delete"], fleet_attributes(target=0), None)
    policy = GuardPolicy(allow_destroy=frozenset({"primary-small"}))
    assert codes(plan(gone), policy) == []


def test_fleet_drained_since_the_last_apply_counts_as_drained() -> None:
    """Of a fleet that left the config Terraform shows the stored capacity, not the live one."""
    change = fleet_change(["delete"])
    refreshed = {"address": change["address"], "values": fleet_attributes(target=0)}
    child = {"child_modules": [{"resources": [refreshed]}]}
    shown = plan(change, prior_state={"values": {"root_module": child}})
    policy = GuardPolicy(allow_destroy=frozenset({"primary-small"}))
    assert codes(shown, policy) == []


def test_rest_of_a_replacement_is_not_taken_for_the_fleet_that_took_over() -> None:
    """Both have one address: the new one would seem to lose its capacity, for every later edit."""
    tags = {"cluster": "analytics", "fleet": "primary-small", "a": "b"}
    change = resource(
        "aws_ec2_fleet",
        ["update"],
        fleet_attributes(target=5),
        fleet_attributes(target=5, tags=tags),
    )
    left = resource("aws_ec2_fleet", ["delete"], fleet_attributes(target=3), None)
    left |= {"deposed": "b0b1"}
    now = {"address": change["address"], "values": fleet_attributes(target=5)}
    old = {"address": left["address"], "deposed_key": "b0b1"}
    state = {"resources": [now, old | {"values": fleet_attributes(target=0)}]}
    shown = plan(change, left, prior_state={"values": {"root_module": state}})
    assert codes(shown, GuardPolicy(allow_destroy=frozenset({"primary-small"}))) == []


def test_replacement_under_another_name_needs_the_approval_of_the_old_one() -> None:
    """The fleet that goes is the one that has the nodes, whatever its successor is called."""
    new = {"cluster": "analytics", "fleet": "spare-small"}
    shown = plan(fleet_change(["create", "delete"], tags=new))
    policy = GuardPolicy(allow_destroy=frozenset({"spare-small"}))
    assert ("refused", "fleet/replace") in codes(shown, policy)


def test_approval_of_one_fleet_does_not_cover_another() -> None:
    """`allow_destroy` names fleets, not intentions."""
    policy = GuardPolicy(allow_destroy=frozenset({"primary-large"}))
    assert codes(plan(fleet_change(["delete"])), policy) == [("refused", "fleet/destroy")]


def test_fleet_that_would_take_its_nodes_along_is_refused_even_when_approved() -> None:
    """`terminate_instances` kills every pod on every node at once."""
    before = fleet_attributes(target=0, terminate_instances=True)
    policy = GuardPolicy(allow_destroy=frozenset({"primary-small"}))
    assert codes(plan(resource("aws_ec2_fleet", ["delete"], before, None)), policy) == [
        ("refused", "fleet/terminates-instances")
    ]


def test_changed_target_capacity_is_refused() -> None:
    """Terraform must never be the second writer of capacity."""
    assert codes(plan(fleet_change(["update"], target=9))) == [("refused", "fleet/capacity")]


@pytest.mark.parametrize("key", ["fleet", "cluster"])
def test_changed_identity_tag_is_refused(key: str) -> None:
    """The capacity loop would lose the fleet and think it missing."""
    tags = {"cluster": "analytics", "fleet": "primary-small", key: "other"}
    assert ("refused", "fleet/identity") in codes(plan(fleet_change(["update"], tags=tags)))


def test_foreign_resource_is_refused_unless_allowed() -> None:
    """A pull request must not smuggle an IAM user into the pipeline's account."""
    shown = plan(resource("aws_iam_user", ["create"], None, {"name": "backdoor"}))
    assert codes(shown) == [("refused", "resource/foreign")]
    assert codes(shown, GuardPolicy(allow_types=frozenset({"aws_iam_user"}))) == []


def test_foreign_resource_without_a_change_passes() -> None:
    """What exists already beside the fleets is not this plan's business."""
    assert codes(plan(resource("aws_vpc", ["no-op"], {"id": "vpc-1"}, {"id": "vpc-1"}))) == []


def test_program_started_by_terraform_is_refused() -> None:
    """A provisioner runs with the pipeline's credentials."""
    nested = {
        "resources": [{"address": "terraform_data.x", "provisioners": [{"type": "local-exec"}]}]
    }
    root = {"module_calls": {"inner": {"source": "./inner", "module": nested}}}
    shown = plan(configuration={"root_module": root})
    (finding,) = guard(shown, GuardPolicy())
    assert (finding.code, finding.where) == (
        "resource/provisioner",
        "module.inner.terraform_data.x",
    )


@pytest.mark.parametrize("within", ["root", "set", "fleet"])
def test_lookups_of_the_modules_are_allowed_at_their_own_address_alone(within: str) -> None:
    """The same data source elsewhere could read a secret into the plan."""

    def found(name: str) -> list[str]:
        read = {"address": f"data.aws_ssm_parameter.{name}", "mode": "data"}
        module: dict[str, Any] = {"resources": [{**read, "type": "aws_ssm_parameter"}]}
        if within == "fleet":
            module = {"module_calls": {"fleet": {"source": "../eks_fleet", "module": module}}}
        if within != "root":
            module = {"module_calls": {"fleets": {"source": "./modules/fleets", "module": module}}}
        shown = plan(configuration={"root_module": module})
        return [finding.code for finding in guard(shown, GuardPolicy())]

    assert found("ami") == (["data/foreign"] if within == "root" else [])
    assert found("password") == ["data/foreign"]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("data", "external"),
        ("data", "terraform_remote_state"),
        ("data", "aws_secretsmanager_secret_version"),
        ("ephemeral", "aws_secretsmanager_secret_version"),
    ],
)
def test_data_that_no_rendered_root_reads_is_refused(mode: str, kind: str) -> None:
    """`external` is a program, and others read what the role may read into the plan."""
    read = {"address": f"{mode}.{kind}.x", "mode": mode, "type": kind}
    nested = {"resources": [read]}
    call = {"source": "./modules/fleets", "module": nested}
    shown = plan(configuration={"root_module": {"module_calls": {"fleets": call}}})
    (finding,) = guard(shown, GuardPolicy())
    assert (finding.severity, finding.code) == ("refused", "data/foreign")
    assert finding.where == f"module.fleets.{mode}.{kind}.x"
    assert guard(shown, GuardPolicy(allow_types=frozenset({kind}))) == ()


@pytest.mark.parametrize(
    "source", ["terraform-aws-modules/vpc/aws", "git::https://evil.example/x", "/srv/x", ""]
)
def test_module_from_elsewhere_is_refused(source: str) -> None:
    """What is behind it may be another thing at the apply than at the review."""
    root = {"module_calls": {"x": {"source": source, "module": {}}}}
    (finding,) = guard(plan(configuration={"root_module": root}), GuardPolicy())
    assert (finding.severity, finding.code, finding.where) == (
        "refused",
        "module/foreign",
        "module.x",
    )


@pytest.mark.parametrize(
    "argument", ["shared_config_files", "profile", "assume_role", "endpoints", "access_key"]
)
def test_provider_argument_beside_the_region_is_refused(argument: str) -> None:
    """`profile` may name a program that gives credentials, `endpoints` a place that takes them."""
    shown = plan()
    configured = shown["configuration"]["provider_config"]
    configured["module.x:aws.other"] = {
        "name": "aws",
        "full_name": "registry.terraform.io/hashicorp/aws",
        "expressions": {argument: {}, "region": {}},
    }
    (finding,) = guard(shown, GuardPolicy())
    assert (finding.severity, finding.code) == ("refused", "provider/argument")
    assert finding.where == "module.x:aws.other"
    assert finding.message.startswith(f"sets {argument}:")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m-/x.tf", 'removed /**/ {\n from = a.b\n provisioner "local-exec" {}\n}\n'),
        ("m-a/x.tf.json", '{"re\\u006doved": {"provi\\u0073ioner": {}}}'),
    ],
)
def test_program_started_by_a_removed_block_is_refused(name: str, text: str) -> None:
    """Terraform runs it with the role that applies, and its plan does not show it."""
    (finding,) = hidden_programs({"m-/main.tf": "# provisioner, removed_", name: text})
    assert (finding.severity, finding.code, finding.where) == (
        "refused",
        "resource/provisioner",
        name,
    )


@pytest.mark.parametrize("key", ["action_invocations", "deferred_action_invocations"])
def test_action_of_a_provider_is_refused(key: str) -> None:
    """`aws_ec2_stop_instance` is no resource: nothing else of the guard would see it."""
    invoked = {"address": "action.aws_ec2_stop_instance.x", "type": "aws_ec2_stop_instance"}
    entry = invoked if key == "action_invocations" else {"action_invocation": invoked}
    (finding,) = guard(plan(**{key: [entry]}), GuardPolicy())
    assert (finding.severity, finding.code) == ("refused", "action/foreign")
    assert finding.where == "action.aws_ec2_stop_instance.x"


@pytest.mark.parametrize(
    ("provider", "code"),
    [
        ({"full_name": "registry.terraform.io/hashicorp/aws"}, "provider/unpinned"),
        ({"full_name": "evil.example/x/aws", "version_constraint": "1.0"}, "provider/foreign"),
    ],
)
def test_strange_provider_is_refused(provider: dict[str, str], code: str) -> None:
    """A provider is a program with every credential of the pipeline."""
    shown = plan(configuration={"provider_config": {"aws": provider}})
    assert codes(shown) == [("refused", code)]


def test_words_hidden_below_a_deep_nesting_are_found() -> None:
    """Terraform's reader may go deeper than ours."""
    text = '{"a":' * 100_000 + '{"re\\u006doved": {"provisione\\u0072": 1}}' + "}" * 100_000
    (finding,) = hidden_programs({"x.tf.json": text})
    assert finding.code == "resource/provisioner"


def test_unfinished_plan_is_refused() -> None:
    """Half a plan says nothing about the other half."""
    assert codes(plan(errored=True)) == [("refused", "plan/errored")]


def test_unknown_kind_of_action_counts_as_a_change() -> None:
    """A future Terraform's new verb must not slip through as nothing."""
    assert codes(plan(resource("aws_iam_user", ["adopt"], {}, {}))) == [
        ("refused", "resource/foreign")
    ]


def test_failed_check_block_is_a_warning_with_its_message() -> None:
    """The modules' own checks speak to the reviewer."""
    check = {
        "address": {"to_display": "check.strategy"},
        "instances": [{"problems": [{"message": "not in force"}]}],
    }
    (finding,) = guard(plan(checks=[check]), GuardPolicy())
    assert (finding.severity, finding.where, finding.message) == (
        "warning",
        "check.strategy",
        "not in force",
    )


@pytest.mark.parametrize("shown", [{}, {"configuration": None}, {"resource_changes": [{}]}])
def test_empty_plan_has_no_findings(shown: dict[str, Any]) -> None:
    """A root without anything must not crash the pipeline."""
    assert guard(shown, GuardPolicy()) == ()


def test_refusals_come_first_and_in_a_stable_order() -> None:
    """Two runs over the same plan must read the same."""
    shown = plan(fleet_change(["delete"]), fleet_change(["delete"], "other"), complete=False)
    found = guard(shown, GuardPolicy())
    assert [f.where for f in found] == ["other", "primary-small", "plan"]
    assert len(refused(found)) == 2

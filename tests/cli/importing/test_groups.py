"""`reconciler import` of Auto Scaling groups: names, sizes, kinds, and what is said of them."""

import pytest

from reconciler.config.loader import load_config
from reconciler.config.resolve import resolve_fleets
from tests.cli.importing.desk import Desk, Json, adopted, group, templated

EKS_NAME = "eks-batch-20260131120000000000000002-12c7b5f4-1111-2222-3333-444455556666"


def test_group_becomes_a_fleet_of_its_own_size(desk: Desk) -> None:
    """Clusters that come from Cluster Autoscaler have groups with node-template tags."""
    node_template = "k8s.io/cluster-autoscaler/node-template"
    tags = {
        "k8s.io/cluster-autoscaler/enabled": "true",
        "k8s.io/cluster-autoscaler/analytics": "owned",
        f"{node_template}/label/sector": "web",
    }
    group = {
        "AutoScalingGroupName": "web-nodes",
        "DesiredCapacity": 2,
        "MinSize": 1,
        "MaxSize": 9,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "MixedInstancesPolicy": {
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-9", "Version": "1"},
                "Overrides": [{"InstanceType": "c6i.2xlarge"}, {"InstanceType": "c5.2xlarge"}],
            }
        },
    }
    code, answer, err = desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"AutoScalingGroups": [group]})
    )
    assert (code, err, answer["fleets"]) == (0, "", ["web-c6i-2xlarge"])
    config = load_config(desk.folder / "out/sectors.yaml")
    (entry,) = config.sectors["web"].fleets
    assert (entry.provider, entry.auto_scaling_group) == ("asg", "web-nodes")
    assert (entry.min_capacity, entry.max_capacity, entry.spot) == (1, 9, False)
    assert config.sectors["web"].kind == "cpu"
    assert config.sizes["c6i-2xlarge"].cpu_milli == 8000
    assert not (desk.folder / "out/terraform").exists()


@pytest.mark.parametrize(
    ("name", "tags", "expected"),
    [
        (EKS_NAME, {"eks:nodegroup-name": "batch"}, "batch-m5-large"),
        ("my nodes/prod", {}, "my-nodes-prod-m5-large"),
    ],
)
def test_group_whose_name_is_no_label_gets_one_that_is(
    desk: Desk, name: str, tags: Json, expected: str
) -> None:
    """EKS calls the groups of managed node groups by more than 63 characters."""
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"AutoScalingGroups": [group(name, tags=tags), group("other")]}),
    )
    assert (code, err) == (0, "")
    assert answer["fleets"] == sorted([expected, "other-m5-large"])
    config = load_config(desk.folder / "out/sectors.yaml")
    entries = [entry for sector in config.sectors.values() for entry in sector.fleets]
    assert name in [entry.auto_scaling_group for entry in entries]


def test_groups_with_one_long_beginning_keep_names_of_their_own(desk: Desk) -> None:
    """Names that are merely cut would make two groups one."""
    names = [f"{'n' * 80}-{number}" for number in range(3)]
    _, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"AutoScalingGroups": [group(name) for name in names]}),
    )
    assert (len(answer["fleets"]), answer["left_out"], err) == (3, {}, "")


def test_group_without_a_sector_label_is_said_to_need_one(desk: Desk) -> None:
    """Pods that select a label that no node carries would have nodes launched, and never bind."""
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers(
            {"AutoScalingGroups": [group("plain"), group("own", labels={"sector": "web"})]}
        ),
    )
    labels = [note for note in answer["notes"] if "label sector=" in note]
    assert [note.partition(": ")[0] for note in labels] == ["plain-m5-large"]
    assert "label sector=plain" in labels[0]
    assert any("default_sector" in note for note in answer["notes"])


def test_one_size_with_other_types_here_and_there_keeps_both(desk: Desk) -> None:
    """A node that is planned for larger than it comes is launched again and again."""
    label = {"size": "wide"}
    groups = [group("a", "m5.large", labels=label), group("b", "r5.2xlarge", labels=label)]
    built_in = group("c", "m5.large", labels={"size": "small", "kind": "memory"})
    desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"AutoScalingGroups": [*groups, built_in]})
    )
    resolved = {
        fleet.sector_name: fleet.instance_types
        for fleet in resolve_fleets(load_config(desk.folder / "out/sectors.yaml"))
    }
    assert resolved == {"a": ("m5.large",), "b": ("r5.2xlarge",), "c": ("m5.large",)}


def test_kind_that_nobody_states_is_the_sectors(desk: Desk) -> None:
    """A guess from the first instance type must not cost a group its place."""
    label = {"sector": "web"}
    groups = [
        group("a", "c5.large", labels={**label, "size": "one"}),
        group("b", "r5.large", labels={**label, "size": "two", "kind": "memory"}),
    ]
    _, answer, _ = desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"AutoScalingGroups": groups})
    )
    assert (sorted(answer["fleets"]), answer["left_out"]) == (["web-one", "web-two"], {})
    assert load_config(desk.folder / "out/sectors.yaml").sectors["web"].kind == "memory"


def test_spot_group_is_known_by_its_distribution_or_launch_configuration(desk: Desk) -> None:
    """Planned at on-demand prices a spot group would be the last to be asked."""
    spot = {
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0,
        }
    }
    desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers(
            {
                "AutoScalingGroups": [
                    group("a", policy=spot),
                    group("b"),
                    {
                        **group("c"),
                        "MixedInstancesPolicy": None,
                        "LaunchConfigurationName": "bid",
                    },
                ],
                "LaunchConfigurations": [
                    {
                        "LaunchConfigurationName": "bid",
                        "InstanceType": "m5.large",
                        "SpotPrice": "0.1",
                    }
                ],
            }
        ),
    )
    config = load_config(desk.folder / "out/sectors.yaml")
    assert {name: sector.fleets[0].spot for name, sector in config.sectors.items()} == {
        "a": True,
        "b": False,
        "c": True,
    }


def test_group_that_the_module_can_describe_is_imported_as_it_is(desk: Desk) -> None:
    """A plan that changes a group in passing launches other nodes than before."""
    answer, imports = adopted(desk, templated("workers", MinSize=2))
    name = "workers-m5-large"
    assert f'to = module.fleets.module.group["{name}"].aws_autoscaling_group.this' in imports
    assert 'id = "workers"' in imports
    assert f'to = module.fleets.module.group["{name}"].aws_launch_template.this' in imports
    (fleet,) = resolve_fleets(load_config(desk.folder / "out/sectors.yaml"))
    assert (fleet.is_rendered, fleet.entry.spot, fleet.entry.max_capacity) == (True, True, 3)
    variables = fleet.terraform
    assert variables["on_demand_percentage_above_base_capacity"] == 25
    assert variables["spot_allocation_strategy"] == "lowestPrice"
    assert variables["private_subnet_ids"] == {"us-west-2a": "subnet-a"}
    assert {tag.key for tag in variables["group_tags"]} == {
        "k8s.io/cluster-autoscaler/analytics",
        "k8s.io/cluster-autoscaler/enabled",
    }
    assert any("its MinSize stays 2" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"VPCZoneIdentifier": "subnet-a,subnet-b"}, "zones of its subnets are not known"),
        ({"VPCZoneIdentifier": "subnet-a,subnet-a"}, "several subnets in one zone"),
        ({"AutoScalingGroupName": "a#b"}, "its name has characters"),
        (
            {"Tags": [{"Key": "cluster", "Value": "prod"}, *group("x")["Tags"]]},
            "it has the tag cluster=prod, so that ci plan refuses its import",
        ),
        (
            {"Tags": [{"Key": "eks:nodegroup-name", "Value": "x"}, *group("x")["Tags"]]},
            "EKS makes it",
        ),
        ({"overrides": [{"InstanceType": "m5.large", "ImageId": "ami-2"}]}, "image of their own"),
        (
            {"distribution": {"OnDemandBaseCapacity": 1}},
            "a base of on-demand instances though all",
        ),
        (
            {
                "distribution": {
                    "OnDemandPercentageAboveBaseCapacity": 0,
                    "SpotAllocationStrategy": "capacity-optimized-prioritized",
                }
            },
            "its spot allocation strategy is capacity-optimized-prioritized",
        ),
        (
            {
                "distribution": {
                    "OnDemandPercentageAboveBaseCapacity": 100,
                    "SpotAllocationStrategy": "capacity-optimized-prioritized",
                }
            },
            "its spot allocation strategy is capacity-optimized-prioritized",
        ),
        (
            {"distribution": {"SpotMaxPrice": "0.2"}},
            "a price for spot instances though all",
        ),
    ],
)
def test_group_that_the_module_cannot_describe_stays_with_whoever_made_it(
    desk: Desk, changes: Json, reason: str
) -> None:
    """Half of a group in Terraform is a plan that changes the other half."""
    answer, imports = adopted(desk, templated("workers", **changes))
    assert imports == ""
    (fleet,) = resolve_fleets(load_config(desk.folder / "out/sectors.yaml"))
    assert not fleet.is_rendered
    left = [note for note in answer["notes"] if "stays out of Terraform (managed: false)" in note]
    assert len(left) == 1
    assert reason in left[0]


def test_on_demand_group_keeps_the_spot_strategy_that_its_policy_states(desk: Desk) -> None:
    """The first plan after an import changed it."""
    adopted(desk, templated("workers", distribution={"OnDemandPercentageAboveBaseCapacity": 100}))
    (fleet,) = resolve_fleets(load_config(desk.folder / "out/sectors.yaml"))
    assert (fleet.is_rendered, fleet.entry.spot) == (True, False)
    assert fleet.terraform["spot_allocation_strategy"] == "lowestPrice"


def test_group_that_is_being_deleted_is_left_out(desk: Desk) -> None:
    """The config would name what is gone by the first apply."""
    going = templated("going") | {"Status": "Delete in progress"}
    answer, _ = adopted(desk, templated("workers"), going)
    assert answer["fleets"] == ["workers-m5-large"]
    assert answer["left_out"] == {"going": "it is being deleted"}


def test_group_needs_no_tag_on_instances_to_lose_nodes(desk: Desk) -> None:
    """Auto Scaling ends them by a right to the group: the note asked for a tag without use."""
    answer, imports = adopted(desk, templated("workers"))
    assert imports
    assert not any("give instances the tag cluster" in note for note in answer["notes"])


def test_groups_that_share_a_launch_template_stay_with_whoever_made_them(desk: Desk) -> None:
    """Two resources that manage one template undo each other's changes."""
    answer, imports = adopted(desk, templated("one"), templated("two"))
    assert imports == ""
    assert sum("shares its launch template" in note for note in answer["notes"]) == 2

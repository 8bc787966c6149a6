"""`reconciler import` of Auto Scaling groups: names, sizes, kinds, and what is said of them."""

import pytest

from reconciler.config.loader import load_config
from reconciler.config.resolve import resolve_fleets
from tests.cli.importing.desk import Desk, Json, group

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
    (plain,) = [note for note in answer["notes"] if note.startswith("plain-m5-large: ")]
    assert "label sector=plain" in plain
    assert not [note for note in answer["notes"] if note.startswith("web-m5-large: ")]
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


def test_spot_group_is_told_by_its_distribution(desk: Desk) -> None:
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
        *desk.answers({"AutoScalingGroups": [group("a", policy=spot), group("b")]}),
    )
    config = load_config(desk.folder / "out/sectors.yaml")
    assert {name: sector.fleets[0].spot for name, sector in config.sectors.items()} == {
        "a": True,
        "b": False,
    }

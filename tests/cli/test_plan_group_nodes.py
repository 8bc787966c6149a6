"""What a new node of an Auto Scaling group will be: read from its nodes, its tags and EKS."""

from typing import Any

import pytest

from tests.cli.groups import CONFIG, FOUND, TEMPLATE, group, plan_of
from tests.cli.inputs import Desk, Json, listing, node, pod

DEDICATED = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
ML: Json = {
    "nodeSelector": {"team": "ml"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
}
NAMED = """\
cluster: analytics
regions: [us-west-2]
default_sector: primary
sizes:
  std: {cpu: 4, memory: 16Gi, pods: 20, instance_types: [m5.xlarge], price_usd_per_hour: 0.2}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: std, provider: asg, auto_scaling_group: workers, spot: false%s}
"""


def member(name: str, labels: Json | None = None, taints: Any = (), **changed: Any) -> Json:
    """A Ready node of a group, with no labels but these and its host name."""
    made = node(name, **changed)
    made["metadata"]["labels"] = {"kubernetes.io/hostname": name, **(labels or {})}
    made["spec"]["taints"] = list(taints)
    return made


def filled(name: str, *nodes: str, **changed: Any) -> Json:
    """A group that has these nodes' instances."""
    members = [{"InstanceId": f"i-{each}", "LifecycleState": "InService"} for each in nodes]
    return group(name, desired=len(nodes), Instances=members, **changed)


def running(name: str, *nodes: str, **changed: Any) -> list[Json]:
    """These nodes' instances as describe-instances shows them."""
    return [
        {
            "InstanceId": f"i-{each}",
            "InstanceType": "m5.xlarge",
            "LaunchTime": "2026-01-31T11:00:00Z",
            "State": {"Name": "running"},
            "Tags": [{"Key": "aws:autoscaling:groupName", "Value": name}],
            **changed,
        }
        for each in nodes
    ]


def bought(made: Json) -> dict[str, list[str]]:
    """The pods that get a new node, by group."""
    found: dict[str, list[str]] = {}
    for placement in made["placements"]:
        if "new_node" in placement:
            found.setdefault(placement["fleet"], []).append(placement["pod"])
    return found


def test_labels_and_taints_of_a_groups_nodes_hold_for_its_next_one(desk: Desk) -> None:
    """Nodes would be bought, one after the other, for pods that do not tolerate their taint."""
    answer = {
        "AutoScalingGroups": [filled("a-dedicated", "d"), group("general")],
        "Reservations": [{"Instances": running("a-dedicated", "d")}],
    }
    made = plan_of(
        desk,
        member("d", {"team": "ml"}, [DEDICATED]),
        pod("ml-0", cpu="4", node="d"),
        pod("ml-1", spec=ML),
        pod("web-1"),
        aws=answer,
    )
    assert bought(made) == {"a-dedicated": ["ml-1"], "general": ["web-1"]}


def test_tags_tell_what_a_group_of_the_config_brings(desk: Desk) -> None:
    """Groups that `import` wrote would be bought from for pods that do not tolerate their taint."""
    tags = {
        f"{TEMPLATE}/label/team": "ml",
        f"{TEMPLATE}/taint/dedicated": "ml:NoSchedule",
        f"{TEMPLATE}/resources/example.com/dongle": "2",
        f"{TEMPLATE}/resources/cpu": "3",
    }
    wanting = pod("ml-1", cpu="3", spec=ML)
    wanting["spec"]["containers"][0]["resources"]["requests"]["example.com/dongle"] = "2"
    answer = {"AutoScalingGroups": [group(tags=tags)]}
    desk.write("sectors.yaml", NAMED % ", managed: false")
    large = pod("ml-2", cpu="3100m", spec=ML)
    made = desk.plan_of(wanting, large, pod("web-1"), aws=answer)
    assert bought(made) == {"primary-std": ["ml-1"]}
    codes = {u["pod"]: u["reasons"][0]["code"] for u in made["unplaceable"]}
    assert codes == {"ml-2": "insufficient-cpu", "web-1": "taint"}


def test_config_says_all_of_a_group_that_terraform_makes_here(desk: Desk) -> None:
    """A taint that the config has given up would refuse pods for as long as an old tag is there."""
    answer = {"AutoScalingGroups": [group(tags={f"{TEMPLATE}/taint/dedicated": "ml:NoSchedule"})]}
    desk.write("sectors.yaml", NAMED % "")
    assert bought(desk.plan_of(pod("web-1"), aws=answer)) == {"primary-std": ["web-1"]}


def test_eks_tells_what_a_node_group_of_the_config_brings(desk: Desk) -> None:
    """EKS tags the group with neither labels nor taints."""
    answer = {
        "nodegroup": {
            "nodegroupName": "ng",
            "labels": {"team": "ml"},
            "taints": [{"key": "dedicated", "value": "ml", "effect": "NO_SCHEDULE"}],
            "resources": {"autoScalingGroups": [{"name": "workers"}]},
        },
        "AutoScalingGroups": [group()],
    }
    desk.write("sectors.yaml", NAMED % ", managed: false")
    made = desk.plan_of(pod("ml-1", spec=ML), pod("web-1"), aws=answer)
    assert bought(made) == {"primary-std": ["ml-1"]}


def test_groups_of_one_name_in_two_regions_are_distinguished(desk: Desk) -> None:
    """A node too small for the pod would be bought in the other region, again and again."""
    desk.write("sectors.yaml", CONFIG.replace("us-west-2", "us-west-2, us-east-1"))
    types = {"us-west-2": "m5.4xlarge", "us-east-1": "m5.large"}
    launch_halted = [{"ProcessName": "Launch"}]
    files: list[str] = []
    for region, each in types.items():
        policy = {"LaunchTemplate": {"Overrides": [{"InstanceType": each}]}}
        halted = launch_halted if region == "us-west-2" else []
        tags = {**FOUND, f"{TEMPLATE}/label/place": region}
        one = group(tags=tags, MixedInstancesPolicy=policy, SuspendedProcesses=halted)
        files += [
            "--aws",
            desk.write(f"{region}.json", {"Region": region, "AutoScalingGroups": [one]}),
        ]
    east = pod("east", spec={"nodeSelector": {"place": "us-east-1"}})
    waiting = desk.write("cluster.json", listing(pod("large", cpu="7"), pod("small"), east))
    made = desk.plan("--cluster", waiting, *files).plan
    placed = {(p["pod"], p["fleet"], p["region"]) for p in made["placements"]}
    assert placed == {("small", "workers", "us-east-1"), ("east", "workers", "us-east-1")}
    assert [u["pod"] for u in made["unplaceable"]] == ["large"]
    assert made["cost"]["hourly_usd_after"] == 0.192


SPOT_SHARES = {"OnDemandPercentageAboveBaseCapacity": 0, "OnDemandBaseCapacity": 0}


def policy(**shares: Any) -> Json:
    """A mixed instances policy of one type."""
    types = [{"InstanceType": "m5.xlarge"}]
    return {"LaunchTemplate": {"Overrides": types}, "InstancesDistribution": shares}


@pytest.mark.parametrize(
    ("desired", "shares", "usd"),
    [
        (0, {}, 0.192),
        (0, SPOT_SHARES, 0.0653),
        (0, {**SPOT_SHARES, "OnDemandBaseCapacity": 1}, 0.192),
        (0, {**SPOT_SHARES, "OnDemandPercentageAboveBaseCapacity": 30}, 0.0653),
        (0, {**SPOT_SHARES, "OnDemandPercentageAboveBaseCapacity": 50}, 0.192),
    ],
)
def test_distribution_says_at_which_price_a_found_group_buys(
    desk: Desk, desired: int, shares: Json, usd: float
) -> None:
    """Spot groups would look three times as dear as they are, and on-demand ones be taken."""
    spot = group(desired=desired, MixedInstancesPolicy=policy(**shares))
    made = plan_of(desk, pod("p"), aws={"AutoScalingGroups": [spot]})
    assert made["cost"]["hourly_usd_after"] == usd


@pytest.mark.parametrize("source", ["template", "configuration", "instances", "label", "none"])
def test_group_that_launches_spot_instances_by_other_means_is_priced_so(
    desk: Desk, source: str
) -> None:
    """A group without a mixed instances policy would always count as on-demand."""
    data: Json = {"InstanceType": "m5.xlarge"}
    if source == "template":
        data["InstanceMarketOptions"] = {"MarketType": "spot"}
    version = {"LaunchTemplateId": "lt-1", "VersionNumber": 1, "LaunchTemplateData": data}
    named: Json = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "1"}}
    configuration = {
        "LaunchConfigurationName": "old",
        "InstanceType": "m5.xlarge",
        "SpotPrice": "0.10" if source == "configuration" else None,
    }
    if source == "configuration":
        named = {"LaunchConfigurationName": "old"}
    label = {f"{TEMPLATE}/label/eks.amazonaws.com/capacityType": "SPOT"}
    tags = {**FOUND, **(label if source == "label" else {})}
    lifecycle = {"InstanceLifecycle": "spot"} if source == "instances" else {}
    answer = {
        "AutoScalingGroups": [
            filled("workers", "n", tags=tags, MixedInstancesPolicy=None, **named)
        ],
        "LaunchTemplateVersions": [version],
        "LaunchConfigurations": [configuration],
        "Reservations": [{"Instances": running("workers", "n", **lifecycle)}],
    }
    made = plan_of(desk, member("n"), pod("p", node="n"), aws=answer)
    assert made["cost"]["hourly_usd_before"] == (0.192 if source == "none" else 0.0653)


def test_on_demand_group_stands_in_for_a_found_spot_group(desk: Desk) -> None:
    """Pods would wait for spot capacity, where Cluster Autoscaler takes the next group."""
    spot = group("spot", desired=1, MixedInstancesPolicy=policy(**SPOT_SHARES))
    failed = {
        "ActivityId": "1",
        "AutoScalingGroupName": "spot",
        "StatusCode": "Failed",
        "StatusMessage": "InsufficientInstanceCapacity: no capacity",
        "Description": "Launching a new EC2 instance.",
        "StartTime": "2026-01-31T11:59:00Z",
    }
    answer = {"AutoScalingGroups": [spot, group("steady")], "Activities": [failed]}
    assert bought(plan_of(desk, pod("p"), aws=answer)) == {"steady": ["p"]}

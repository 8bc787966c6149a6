"""Auto Scaling groups that are found by their tags, with a config that names no sectors."""

import pytest

from tests.cli.groups import AUTOSCALER, CONFIG, FOUND, TEMPLATE, group, plan_of
from tests.cli.inputs import Desk, listing, node, pod


def test_pod_without_a_sector_scales_a_found_group_from_zero(desk: Desk) -> None:
    """A user of Cluster Autoscaler would have to write a config before anything is scaled."""
    made = plan_of(desk, pod("p"), aws={"AutoScalingGroups": [group()]})
    (raised,) = made["actions"]
    assert (raised["fleet"], raised["provider"], raised["id"]) == ("workers", "asg", "workers")
    assert (raised["from"], raised["to"]) == (0, 1)
    assert made["ignored"] == []


@pytest.mark.parametrize("halted", [False, True])
def test_preferred_region_comes_first_whatever_its_groups_are_called(
    desk: Desk, halted: bool
) -> None:
    """Demand would go wherever it is cheapest, and nodes be spread over the regions."""
    desk.write("sectors.yaml", CONFIG.replace("us-west-2", "us-west-2, us-east-1"))
    home = group("home", SuspendedProcesses=[{"ProcessName": "Launch"}] if halted else [])
    cheaper = {"LaunchTemplate": {"Overrides": [{"InstanceType": "m5.large"}]}}
    away = group("away", MixedInstancesPolicy=cheaper)
    answers = {"us-west-2": home, "us-east-1": away}
    files = [
        desk.write(f"{region}.json", {"Region": region, "AutoScalingGroups": [each]})
        for region, each in answers.items()
    ]
    waiting = desk.write("cluster.json", listing(pod("p")))
    made = desk.plan("--cluster", waiting, "--aws", files[0], "--aws", files[1]).plan
    found = [(a["fleet"], a["region"], a["policy"]) for a in made["actions"]]
    there = ("away", "us-east-1", "overflow") if halted else ("home", "us-west-2", "scale-up")
    assert found == [there]


def test_group_of_mixed_instances_promises_the_least_of_them(desk: Desk) -> None:
    """A node of the smaller type would come, and the pod still wait."""
    made = plan_of(desk, pod("p", memory="12Gi"), aws={"AutoScalingGroups": [group()]})
    assert made["unplaceable"][0]["reasons"][0]["code"] == "insufficient-memory"
    assert made["actions"] == []


def test_node_template_tags_say_what_a_node_will_be(desk: Desk) -> None:
    """Pods that select, tolerate and ask for what only tags tell would never be served."""
    tags = {
        **FOUND,
        f"{TEMPLATE}/label/team": "data",
        f"{TEMPLATE}/taint/dedicated": "data:NoSchedule",
        f"{TEMPLATE}/resources/example.com/dongle": "2",
    }
    spec = {"nodeSelector": {"team": "data"}}
    tolerant = {**spec, "tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    wanting = pod("a", spec=tolerant)
    wanting["spec"]["containers"][0]["resources"]["requests"]["example.com/dongle"] = "2"
    made = plan_of(
        desk, wanting, pod("b", spec=spec), aws={"AutoScalingGroups": [group(tags=tags)]}
    )
    assert [placed["pod"] for placed in made["placements"]] == ["a"]
    assert [(u["pod"], u["reasons"][0]["code"]) for u in made["unplaceable"]] == [("b", "taint")]


@pytest.mark.parametrize(
    ("tags", "fleets"),
    [
        ({"KubernetesCluster": "analytics", "KubernetesRole": "minion"}, ["workers"]),
        ({"KubernetesCluster": "analytics", "Role": "master"}, []),
        ({"KubernetesCluster": "other", "Role": "worker"}, []),
        ({f"{AUTOSCALER}/enabled": "true"}, []),
    ],
)
def test_only_groups_of_the_cluster_are_found(
    desk: Desk, tags: dict[str, str], fleets: list[str]
) -> None:
    """Somebody else's nodes would be bought or ended."""
    made = plan_of(desk, aws={"AutoScalingGroups": [group(tags=tags)]})
    assert [fleet["fleet"] for fleet in made["fleets"]] == fleets


def test_unknown_type_is_described_by_tags_or_serves_nobody(desk: Desk) -> None:
    """Nodes would be bought for pods that may not fit on them."""
    unknown = {
        "LaunchTemplate": {"Overrides": [{"InstanceType": "z99.huge"}]},
    }
    told = {**FOUND, f"{TEMPLATE}/resources/cpu": "8", f"{TEMPLATE}/resources/memory": "32Gi"}
    for tags, placed in ((FOUND, 0), (told, 1)):
        groups = [group(tags=tags, MixedInstancesPolicy=unknown)]
        made = plan_of(desk, pod("p"), aws={"AutoScalingGroups": groups})
        assert len(made["placements"]) == placed


def test_managed_node_group_tells_its_labels_and_taints(desk: Desk) -> None:
    """EKS tags the group with neither."""
    answer = {
        "nodegroup": {
            "nodegroupName": "ng",
            "labels": {"team": "data"},
            "taints": [{"key": "dedicated", "value": "data", "effect": "NO_SCHEDULE"}],
            "instanceTypes": ["m5.large"],
            "capacityType": "SPOT",
            "resources": {"autoScalingGroups": [{"name": "workers"}]},
        },
        "AutoScalingGroups": [group(MixedInstancesPolicy=None)],
    }
    spec = {
        "nodeSelector": {"team": "data", "eks.amazonaws.com/nodegroup": "ng"},
        "tolerations": [{"key": "dedicated", "value": "data", "effect": "NoSchedule"}],
    }
    made = plan_of(desk, pod("p", cpu="500m", spec=spec), aws=answer)
    assert [(a["fleet"], a["to"]) for a in made["actions"]] == [("workers", 1)]


def test_idle_node_of_a_found_group_leaves_down_to_its_minimum(desk: Desk) -> None:
    """Groups would only ever grow."""
    worker = node("n", annotations={"fleet-reconciler.io/unneeded-since": "2026-01-31T11:01:00Z"})
    worker["metadata"]["labels"] = {"kubernetes.io/hostname": "n"}
    member = {"InstanceId": "i-n", "LifecycleState": "InService", "ProtectedFromScaleIn": False}
    running = {
        "InstanceId": "i-n",
        "InstanceType": "m5.xlarge",
        "LaunchTime": "2026-01-31T11:00:00Z",
        "State": {"Name": "running"},
        "Tags": [{"Key": "aws:autoscaling:groupName", "Value": "workers"}],
    }
    for least, actions in ((0, ["taint-node"]), (1, [])):
        answer = {
            "AutoScalingGroups": [group(desired=1, MinSize=least, Instances=[member])],
            "Reservations": [{"Instances": [running]}],
        }
        made = plan_of(desk, worker, aws=answer)
        assert [action["action"] for action in made["actions"]] == actions


def test_groups_are_left_alone_where_the_config_names_sectors(desk: Desk) -> None:
    """A config that names what it runs would come to run what it does not name."""
    made = desk.plan_of(aws={"AutoScalingGroups": [group(desired=2)]})
    assert "workers" not in [fleet["fleet"] for fleet in made["fleets"]]


@pytest.mark.parametrize(
    ("config", "placed"),
    [("", True), ("reserved_cpus: 1\n", False), ("reserved_memory: 1Gi\n", True)],
)
def test_pod_that_fits_what_eks_leaves_gets_a_node_of_an_empty_group(
    desk: Desk, config: str, placed: bool
) -> None:
    """It ran for a year under Cluster Autoscaler, and after the switch it would wait forever."""
    desk.write("sectors.yaml", CONFIG + config)
    wanting = pod("p", cpu="3500m")
    made = desk.plan_of(wanting, aws={"AutoScalingGroups": [group()]})
    assert [action["to"] for action in made["actions"]] == ([1] if placed else [])


def test_resources_tag_of_a_group_is_what_its_nodes_offer(desk: Desk) -> None:
    """People set it to what their nodes have: reduced again, it cures nothing."""
    tags = {**FOUND, f"{TEMPLATE}/resources/cpu": "3920m", f"{TEMPLATE}/resources/memory": "7Gi"}
    wanting = pod("p", cpu="3920m", memory="7Gi")
    made = plan_of(desk, wanting, aws={"AutoScalingGroups": [group(tags=tags)]})
    assert [action["to"] for action in made["actions"]] == [1]


def test_headroom_of_a_config_without_sectors_is_bought_from_the_groups(desk: Desk) -> None:
    """kubernetes-ec2-autoscaler kept five nodes free; after the switch none could be."""
    desk.write("sectors.yaml", CONFIG + "headroom: [{nodes: 2}]\n")
    made = desk.plan_of(aws={"AutoScalingGroups": [group()]})
    (raised,) = made["actions"]
    assert (raised["fleet"], raised["to"]) == ("workers", 2)
    assert raised["because"] == "headroom (2 nodes): 2 more nodes need to come"
    (kept,) = made["headroom"]
    assert (kept["sector"], kept["pieces"], kept["missing"]) == ("", 2, 0)


def test_headroom_in_nodes_is_of_a_group_whose_nodes_are_known(desk: Desk) -> None:
    """Nodes of unknown types count as free and offer nothing: that much room is always there."""
    desk.write("sectors.yaml", CONFIG + "headroom: [{nodes: 2}]\n")
    template = {"LaunchTemplateId": "lt-1"}
    unknown = group("unknown", LaunchTemplate=template, MixedInstancesPolicy=None)
    made = desk.plan_of(aws={"AutoScalingGroups": [group(), unknown]})
    (raised,) = made["actions"]
    assert (raised["fleet"], raised["to"]) == ("workers", 2)


@pytest.mark.parametrize(
    ("effect", "others", "bought"),
    [("NoSchedule", False, "z"), ("PreferNoSchedule", False, "a"), ("NoSchedule", True, "a")],
)
def test_headroom_of_groups_is_where_pods_without_tolerations_run(
    desk: Desk, effect: str, bought: str, *, others: bool
) -> None:
    """Room in the cheapest group is of no use to most pods if that one is dedicated to a team."""
    desk.write("sectors.yaml", CONFIG + "headroom: [{nodes: 2}]\n")
    tags = {**FOUND, f"{TEMPLATE}/taint/dedicated": f"ml:{effect}"}
    cheaper = {"LaunchTemplate": {"Overrides": [{"InstanceType": "m5.large"}]}}
    groups = [
        group("a", tags=tags, MixedInstancesPolicy=cheaper),
        group("z", tags=tags if others else FOUND),
    ]
    made = desk.plan_of(aws={"AutoScalingGroups": groups})
    assert [(raised["fleet"], raised["to"]) for raised in made["actions"]] == [(bought, 2)]

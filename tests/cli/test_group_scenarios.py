"""What users of Cluster Autoscaler rely on for groups that are found by their tags, from zero."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.cli.groups import FOUND, TEMPLATE, group, plan_of
from tests.cli.inputs import Desk, Json, listing, pod

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def in_zones(name: str, *zones: str, **changed: Any) -> Json:
    """A group as AWS shows it: with the zones of its subnets."""
    return group(name, AvailabilityZones=list(zones), **changed)


def volume(zone: str) -> tuple[Json, Json]:
    """A claim and its volume, which is in one zone."""
    where = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ns", "uid": "uid-data"},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }
    bound: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "uid": "uid-pv"},
        "spec": {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "claimRef": {"namespace": "ns", "name": "data", "uid": "uid-data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
        },
    }
    return claim, bound


def database() -> Json:
    """A pod that uses the claim."""
    source = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return pod("db", spec={"volumes": [source]})


def raised(made: Json) -> dict[str, int]:
    """By how many nodes each group grows."""
    found = [action for action in made["actions"] if action["action"] == "set-capacity"]
    return {each["fleet"]: each["to"] - each["from"] for each in found}


@pytest.mark.parametrize("zone", ZONES)
def test_pod_with_a_zonal_volume_gets_its_node_in_that_zone(desk: Desk, zone: str) -> None:
    """Empty groups tell no zone in their tags: the pod would wait, or its node come elsewhere."""
    groups = [in_zones(f"workers-{each[-1]}", each) for each in ZONES]
    made = plan_of(desk, database(), *volume(zone), aws={"AutoScalingGroups": groups})
    assert raised(made) == {f"workers-{zone[-1]}": 1}
    assert made["unplaceable"] == []


def test_pod_that_selects_a_zone_gets_its_node_there(desk: Desk) -> None:
    """The label comes from the cloud provider, and no tag says it."""
    groups = [in_zones(f"workers-{zone[-1]}", zone) for zone in ZONES]
    wanting = pod("p", spec={"nodeSelector": {"topology.kubernetes.io/zone": ZONES[1]}})
    assert raised(plan_of(desk, wanting, aws={"AutoScalingGroups": groups})) == {"workers-b": 1}


def test_group_of_other_zones_is_not_asked_for_a_zonal_volume(desk: Desk) -> None:
    """Its node could never mount it."""
    groups = [in_zones("workers", *ZONES[:2])]
    made = plan_of(desk, database(), *volume(ZONES[2]), aws={"AutoScalingGroups": groups})
    assert raised(made) == {}
    assert {r["code"] for r in made["unplaceable"][0]["reasons"]} == {"volume-zone"}


def test_zone_of_a_tag_counts_before_that_of_the_group(desk: Desk) -> None:
    """Whoever states it knows more than AWS shows."""
    tags = {**FOUND, f"{TEMPLATE}/label/topology.kubernetes.io/zone": ZONES[0]}
    groups = [in_zones("workers", *ZONES, tags=tags)]
    made = plan_of(desk, database(), *volume(ZONES[0]), aws={"AutoScalingGroups": groups})
    assert raised(made) == {"workers": 1}


def spread() -> Mapping[str, Any]:
    """One pod more or less in each zone."""
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }


def test_pods_that_spread_over_zones_raise_a_group_of_each(desk: Desk) -> None:
    """Two of three would wait beside groups that could take them."""
    groups = [in_zones(f"workers-{zone[-1]}", zone) for zone in ZONES]
    web = [pod(f"w{n}", cpu="3", spec=spread(), labels={"app": "web"}) for n in range(3)]
    made = plan_of(desk, *web, aws={"AutoScalingGroups": groups})
    assert raised(made) == {"workers-a": 1, "workers-b": 1, "workers-c": 1}


def failed(name: str, message: str) -> Json:
    """A launch that came to nothing a minute ago."""
    return {
        "ActivityId": f"a-{name}",
        "AutoScalingGroupName": name,
        "StatusCode": "Failed",
        "StartTime": "2026-01-31T11:59:00Z",
        "Description": "Launching a new EC2 instance",
        "StatusMessage": f"{message} Launching EC2 instance failed.",
    }


@pytest.mark.parametrize(
    "message",
    [
        "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity.",
        "We currently do not have sufficient m5.xlarge capacity (InsufficientInstanceCapacity).",
        "You have requested more vCPU capacity than your limit allows (VcpuLimitExceeded).",
        "The image id '[ami-1]' does not exist (InvalidAMIID.NotFound).",
    ],
    ids=["spot", "on-demand", "quota", "launch-template"],
)
def test_group_that_cannot_launch_gives_its_demand_to_another(desk: Desk, message: str) -> None:
    """Pods would wait until somebody reads the group's activities."""
    groups = [group("first", desired=1), group("second")]
    answer = {"AutoScalingGroups": groups, "Activities": [failed("first", message)]}
    assert raised(plan_of(desk, pod("p"), aws=answer)) == {"second": 1}


def test_group_that_cannot_launch_keeps_what_it_was_asked_for(desk: Desk) -> None:
    """Lowered, its group would end a node of its own choice when some were launched after all."""
    answer = {
        "AutoScalingGroups": [group("first", desired=3)],
        "Activities": [failed("first", "UnfulfillableCapacity - no.")],
    }
    made = plan_of(desk, aws=answer)
    assert made["actions"] == []
    assert [(f["current"], f["target"]) for f in made["fleets"]] == [(3, 3)]


TWO_REGIONS = "cluster: analytics\nregions: [us-west-2, us-east-1]\n"


def in_two_regions(desk: Desk, *activities: Json, most: int = 3) -> Json:
    """The plan for a pod, with a group of one name in either region."""
    desk.write("sectors.yaml", TWO_REGIONS)
    home = {"AutoScalingGroups": [group(MaxSize=most)], "Activities": list(activities)}
    away = {"AutoScalingGroups": [group()], "Region": "us-east-1"}
    answers = desk.write("answers.json", [home, away])
    cluster = desk.write("cluster.json", listing(pod("p")))
    return desk.plan("--cluster", cluster, "--aws", answers).plan


def test_demand_overflows_into_the_next_region_when_the_first_has_no_capacity(desk: Desk) -> None:
    """Regions in order of preference: the first one while it can, the next one when it cannot."""
    for activities, expected in (
        ([], [("us-west-2", "scale-up")]),
        ([failed("workers", "InsufficientInstanceCapacity - none.")], [("us-east-1", "overflow")]),
    ):
        made = in_two_regions(desk, *activities)
        assert [(a["region"], a["policy"]) for a in made["actions"]] == expected
        assert made["unplaceable"] == []


def test_group_at_its_maximum_does_not_overflow_into_the_next_region(desk: Desk) -> None:
    """Whoever limits a group wants to limit what it costs, not to move it."""
    made = in_two_regions(desk, most=0)
    assert made["actions"] == []
    assert made["unplaceable"][0]["pod"] == "p"


@pytest.mark.parametrize(
    ("zones", "suspended", "told"),
    [(ZONES, (), True), (ZONES, ("AZRebalance",), False), (ZONES[:1], (), False)],
    ids=["runs", "suspended", "one-zone"],
)
def test_plan_says_which_groups_may_end_nodes_to_even_out_their_zones(
    desk: Desk, zones: tuple[str, ...], suspended: tuple[str, ...], told: bool
) -> None:
    """Nodes with pods would end past all budgets, and nothing name the cause."""
    processes = [{"ProcessName": name, "SuspensionReason": "by hand"} for name in suspended]
    groups = [in_zones("workers", *zones, SuspendedProcesses=processes)]
    (fleet,) = plan_of(desk, aws={"AutoScalingGroups": groups})["fleets"]
    assert fleet.get("az_rebalance", False) is told

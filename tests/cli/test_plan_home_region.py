"""Offline plans of a config without `regions`: the files show where the cluster is."""

from typing import Any

import pytest

from tests.cli.groups import group
from tests.cli.inputs import (
    Desk,
    Json,
    fleet,
    fleets,
    instances,
    listing,
    node,
    pod,
)

WITHOUT_REGIONS = """\
cluster_name: analytics
default_sector: primary
sectors:
  primary:
    kind: memory
    fleets:
    - {size: std, min_capacity: 1}
sizes:
  std: {cpu: 4, memory: 16Gi, pods: 20, instance_types: [m5.xlarge],
        price_usd_per_hour: 0.2, spot_price_usd_per_hour: 0.1}
"""
FAR_SECTOR = """\
  far:
    kind: memory
    fleets:
    - {size: std, regions: [eu-west-1]}
"""
REGION_LABEL = "topology.kubernetes.io/region"


@pytest.fixture(autouse=True)
def _no_aws_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of whoever runs the tests say nothing."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


@pytest.fixture
def bare(desk: Desk) -> Desk:
    """The folder with a config that names no regions, as Kluster Fleet Manager's do."""
    desk.write("sectors.yaml", WITHOUT_REGIONS)
    return desk


def elsewhere(name: str, region: str, **changed: Any) -> Json:
    """A node of another region than us-west-2."""
    made = node(name, zone=f"{region}a", **changed)
    made["metadata"]["labels"][REGION_LABEL] = region
    return made


def only_fleet(made: Json) -> Json:
    """The one fleet of a plan."""
    (found,) = made["fleets"]
    return dict(found)


def test_fleet_is_where_its_nodes_are(bare: Desk) -> None:
    """A second node would be bought for the minimum, although one runs in the cluster's region."""
    made = bare.plan_of(node("n1"), pod("a", node="n1"))
    assert only_fleet(made)["region"] == "us-west-2"
    assert (only_fleet(made)["current"], only_fleet(made)["joined"]) == (1, 1)
    assert made["actions"] == []


def test_region_that_the_answers_state_counts_first(bare: Desk) -> None:
    """A snapshot's own files name their region; planned elsewhere, the fleet would be missing."""
    made = bare.plan_of(aws=fleets(fleet("primary-std", 2), region="eu-central-1"))
    assert only_fleet(made)["region"] == "eu-central-1"
    assert (only_fleet(made)["current"], only_fleet(made)["state"]) == (2, "active")


def test_answers_without_region_are_of_the_region_of_the_nodes(bare: Desk) -> None:
    """The node would always count as launching, and a pending pod would wait for it."""
    made = bare.plan_of(
        node("n1"),
        pod("a", node="n1", cpu="3"),
        pod("b", cpu="3"),
        aws=fleets(fleet("primary-std", 1)),
    )
    assert (only_fleet(made)["joined"], only_fleet(made)["target"]) == (1, 2)


def test_pod_that_selects_the_clusters_region_gets_a_node(bare: Desk) -> None:
    """It would be refused: a new node would be said to be in us-east-1."""
    selecting = pod("a", cpu="3", spec={"nodeSelector": {REGION_LABEL: "us-west-2"}})
    made = bare.plan_of(node("n1"), pod("b", node="n1", cpu="3"), selecting)
    assert made["unplaceable"] == []
    assert only_fleet(made)["target"] == 2


def test_node_of_a_fleet_is_explained_as_ours(bare: Desk) -> None:
    """It would be called foreign, and never touched."""
    cluster = bare.write("cluster.json", listing(node("n1"), pod("a", node="n1")))
    config = str(bare.folder / "sectors.yaml")
    answer = bare.command("explain", "node", "n1", "--config", config, "--cluster", cluster)
    assert answer.code == 0
    assert "no-fleet" not in answer.out


def test_nodes_of_other_makers_do_not_count_beside_those_of_fleets(bare: Desk) -> None:
    """One node of a managed group in another region would hide where the fleets are."""
    other = elsewhere("m1", "eu-west-1", fleet="other-std")
    assert only_fleet(bare.plan_of(node("n1"), other))["region"] == "us-west-2"


def test_fleet_of_a_region_of_its_own_does_not_show_where_home_is(bare: Desk) -> None:
    """The fleets without regions would be planned where only that one is."""
    bare.write("sectors.yaml", WITHOUT_REGIONS.replace("sizes:\n", f"{FAR_SECTOR}sizes:\n"))
    answers = [
        fleets(fleet("primary-std", 1), region="us-west-2"),
        fleets(fleet("far-std", 1), region="eu-west-1"),
    ]
    files = [bare.write(f"aws-{n}.json", each) for n, each in enumerate(answers)]
    cluster = bare.write("cluster.json", listing())
    made = bare.plan("--cluster", cluster, "--aws", *files).plan
    places = {each["fleet"]: (each["region"], each["state"]) for each in made["fleets"]}
    assert places == {"primary-std": ("us-west-2", "active"), "far-std": ("eu-west-1", "active")}


def test_zones_of_discovered_groups_show_their_region(bare: Desk) -> None:
    """Their actions would name us-east-1, where there is no such group."""
    bare.write("sectors.yaml", "cluster: analytics\n")
    found = group(desired=0, AvailabilityZones=["us-west-2a", "us-west-2-lax-1a"])
    made = bare.plan_of(pod("a"), aws={"AutoScalingGroups": [found]})
    assert [action["region"] for action in made["actions"]] == ["us-west-2"]


def test_zones_of_instances_show_their_region(bare: Desk) -> None:
    """Without nodes, as while the first instances start, the answers would count as us-east-1's."""
    answer = {**fleets(fleet("primary-std", 1)), **instances(("n1", "primary-std"))}
    assert only_fleet(bare.plan_of(aws=answer))["region"] == "us-west-2"


def test_aws_settings_count_where_no_file_shows_the_region(
    bare: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live plan in the same shell would be of another region."""
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert only_fleet(bare.plan_of())["region"] == "eu-west-3"
    assert only_fleet(bare.plan_of(node("n1")))["region"] == "us-west-2"


def test_broken_aws_settings_do_not_stop_an_offline_plan(
    bare: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline planning needs no AWS: a profile that does not exist would end it."""
    monkeypatch.setenv("AWS_PROFILE", "missing-profile")
    assert only_fleet(bare.plan_of())["region"] == "us-east-1"


def test_nodes_of_several_regions_show_none(bare: Desk) -> None:
    """Which of them is home would depend on the order of the nodes."""
    made = bare.plan_of(node("n1"), elsewhere("n2", "eu-west-1"))
    assert only_fleet(made)["region"] == "us-east-1"


def test_regions_of_the_config_count_alone(desk: Desk) -> None:
    """What a person has stated would be overruled by a file."""
    answer = fleets(fleet("primary-std", 1), region="eu-central-1")
    made = desk.plan_of(elsewhere("n1", "eu-west-1"), aws=answer)
    assert {each["region"] for each in made["fleets"]} == {"us-west-2"}

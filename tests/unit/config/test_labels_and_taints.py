"""Labels and taints that no node could have, and names that two fleets would share."""

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.config.planning.settings import planner_settings
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.model.errors import ConfigError
from tests.unit.config.documents import config_of, found, with_fleets


def test_label_that_the_kubelet_refuses_is_reserved() -> None:
    """Nodes with it never join: the kubelet ends at once."""
    refused = "{size: small, labels: {node-role.kubernetes.io/batch: x}}"
    assert [code for code, *_ in found(with_fleets(refused))] == ["labels/reserved"]
    allowed = "{size: small, labels: {node.kubernetes.io/pool: x, team.io/a: ''}}"
    assert found(with_fleets(allowed)) == []


@pytest.mark.parametrize(
    "part",
    [
        "labels: {-bad: x}",
        "labels: {good: bad value}",
        "taints: [{key: 'a b', effect: NoSchedule}]",
        "taints: [{key: a, value: 'b c', effect: NoSchedule}]",
        "taints: [{key: fleet-reconciler.io/draining, effect: NoSchedule}]",
        "terraform: {node_taints: 'a b=c:NoSchedule'}",
        "terraform: {node_taints: 'good=x:NoExecute,a=-c:NoSchedule'}",
        "terraform: {node_taints: 'fleet-reconciler.io/draining=x:NoSchedule'}",
    ],
)
def test_malformed_label_or_taint_is_a_name_fault(part: str) -> None:
    """The API server would refuse the node."""
    assert [c for c, *_ in found(with_fleets(f"{{size: small, {part}}}"))] == ["name/label"]


@pytest.mark.parametrize(
    ("fleets", "codes"),
    [
        ("{size: small}, {size: small, lifecycle: on-demand}", []),
        ("{size: small, lifecycle: spot}, {size: small, lifecycle: on-demand}", []),
        ("{size: small, zone: us-west-2a}, {size: small, lifecycle: on-demand}", []),
        ("{size: small, lifecycle: on-demand, spot: false}", []),
        ("{size: small}, {size: small, lifecycle: spot}", ["sector/duplicate-fleet"]),
        ("{size: small, zone: a1}, {size: small, lifecycle: spot}", ["sector/duplicate-fleet"]),
        ("{size: small}, {size: small, spot: false}", ["sector/duplicate-fleet"]),
        ("{size: small, lifecycle: on-demand, spot: true}", ["config/range"]),
        ("{size: small, lifecycle: OnDemand}", ["config/type"]),
    ],
)
def test_spot_and_on_demand_of_one_size_are_distinguished_by_lifecycle(
    fleets: str, codes: list[str]
) -> None:
    """Two fleets for the same nodes would each buy for the same pods."""
    assert [code for code, *_ in found(with_fleets(fleets))] == codes


def test_spot_and_on_demand_without_lifecycle_are_shown_the_way_out() -> None:
    """The message names both lines and the key that tells the two apart."""
    with pytest.raises(ConfigError) as caught:
        config_of(with_fleets("{size: small},\n {size: small, spot: false}"))
    (problem,) = caught.value.problems
    assert (problem.line, "line 1" in problem.message) == (2, True)
    assert "give the one on line 2 `lifecycle: on-demand`" in problem.message


@pytest.mark.parametrize(
    ("fleets", "words"),
    [
        ("{size: small},\n {size: small}", "give each a `zone`, which becomes part of its name"),
        ("{size: small, zone: a1},\n {size: small, zone: a1}", "give each a size of its own"),
    ],
)
def test_two_fleets_of_one_size_are_shown_the_way_out(fleets: str, words: str) -> None:
    """Groups of one instance type in three zones are what Cluster Autoscaler advises."""
    with pytest.raises(ConfigError) as caught:
        config_of(with_fleets(fleets))
    (problem,) = caught.value.problems
    assert problem.message.startswith("fleet 'primary-small")
    assert words in problem.message


def test_own_size_of_another_kind_is_shown_the_way_out() -> None:
    """A group of another family joins the sector once its size has no kind."""
    size = "sizes: {c5: {kind: cpu, cpu: 2, memory: 4Gi, instance_types: [c5.large]}}\n"
    with pytest.raises(ConfigError) as caught:
        config_of(size + with_fleets("{size: c5}"))
    (problem,) = caught.value.problems
    assert "a size without `kind` may be in sectors of any kind" in problem.message
    config_of(size.replace("kind: cpu, ", "") + with_fleets("{size: c5}"))


def test_lifecycle_decides_spot_and_is_part_of_the_name() -> None:
    """Nodes that are called on-demand and bought as spot would end without notice."""
    text = "cluster: c\n" + with_fleets("{size: small}, {size: small, lifecycle: on-demand}")
    (sector,) = planner_settings(config_of(text), load_catalogue()).sectors
    named = {fleet.name: (fleet.spot, fleet.labels["lifecycle"]) for fleet in sector.fleets}
    assert named == {
        "primary-small": (True, "Ec2Spot"),
        "primary-small-on-demand": (False, "OnDemand"),
    }
    rendered = root_module_of(config_of(text)).fleets
    assert rendered.keys() == named.keys()
    assert rendered["primary-small-on-demand"]["lifecycle_in_name"] is True
    assert rendered["primary-small-on-demand"]["spot"] is False


def test_two_sectors_whose_fleets_share_a_full_name_are_duplicates() -> None:
    """Two fleets with one `fleet` tag would be taken for one."""
    size = "sizes: {b-small: {cpu: 1, memory: 1Gi, instance_types: [t3.small]}}\n"
    text = size + (
        "sectors: {a-b: {kind: cpu, fleets: [{size: small}]},"
        " a: {kind: cpu, fleets: [{size: b-small}]}}\n"
    )
    assert [code for code, *_ in found(text)] == ["sector/duplicate-fleet"]

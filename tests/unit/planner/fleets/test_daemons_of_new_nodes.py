"""DaemonSets that run on some kinds of a fleet's nodes: what a new node offers beside them."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.fleet import InstanceOption
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm
from tests.builders import (
    ZONE,
    amounts,
    make_daemon_set,
    make_fleet_settings,
    make_node,
    make_option,
    requiring,
)
from tests.unit.planner.counted_lines import CountedLine
from tests.unit.planner.fleets.offered import offered

AMD, ARM = make_option("amd"), replace(make_option("arm"), arch="arm64")
SMALL, LARGE = make_option("small"), make_option("large", 16, "64Gi")
TYPE, ARCH = "node.kubernetes.io/instance-type", "kubernetes.io/arch"
PER_KIND = [
    ({"options": (AMD, ARM)}, {"amd64": {ARCH: "amd64"}, "arm64": {ARCH: "arm64"}}),
    ({"options": (AMD, ARM)}, {"amd": {TYPE: "amd"}, "arm": {TYPE: "arm"}}),
    (
        {"zones": ("us-west-2a", "us-west-2b")},
        {"a": {ZONE: "us-west-2a"}, "b": {ZONE: "us-west-2b"}},
    ),
]


@pytest.mark.parametrize("zone", ["us-west-2a", "us-west-2b"])
@pytest.mark.parametrize("selects_by", ["selector", "affinity"])
def test_daemon_that_lands_in_one_zone_of_the_fleet_is_taken_off(
    selects_by: str, zone: str
) -> None:
    """EC2 chooses the zone: the pod would not fit beside the daemon."""
    wanted: dict[str, Any] = {"node_selector": {ZONE: zone}}
    if selects_by == "affinity":
        wanted = {"node_affinity": requiring(ZONE, "In", zone)}
    daemon = make_daemon_set(memory="3Gi", **wanted)
    fleet = make_fleet_settings(zones=("us-west-2a", "us-west-2b"))
    assert offered(fleet, daemon_sets=(daemon,)) == "13Gi"


@pytest.mark.parametrize("nodes", [0, 1])
@pytest.mark.parametrize(("fleet", "selectors"), PER_KIND)
def test_only_one_of_the_daemons_for_several_kinds_of_node_is_taken_off(
    fleet: dict[str, Any], selectors: dict[str, dict[str, str]], nodes: int
) -> None:
    """No node runs the agents of two architectures: a pod that fits would stay pending."""
    settings = make_fleet_settings(**fleet)
    agents = [make_daemon_set(n, memory="3Gi", node_selector=s) for n, s in selectors.items()]
    everywhere = make_daemon_set("everywhere", memory="1Gi")
    seen = [make_node(f"n{number}", settings) for number in range(nodes)]
    assert offered(settings, *seen, daemon_sets=(*agents, everywhere)) == "12Gi"


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        ([], "16Gi"),
        ([(SMALL, "15Gi")], "15Gi"),
        ([(SMALL, "15Gi"), (LARGE, "60Gi")], "15Gi"),
        ([(SMALL, "15Gi"), (LARGE, "40Gi")], "10Gi"),
        ([(LARGE, "60Gi")], "15Gi"),  # the small one that comes next offers a quarter
    ],
)
def test_daemon_of_a_large_instance_type_is_taken_off_the_large_one(
    seen: list[tuple[InstanceOption, str]], left: str
) -> None:
    """Taken off the smallest one, it would leave no room on a node that does not run it."""
    fleet = make_fleet_settings(options=(SMALL, LARGE))
    daemon = make_daemon_set(memory="30Gi", node_selector={TYPE: "large"})
    nodes = [
        make_node(
            option.instance_type,
            fleet,
            labels={TYPE: option.instance_type},
            allocatable=amounts(cpu=4, memory=memory, pods=58),
        )
        for option, memory in seen
    ]
    assert offered(fleet, *nodes, daemon_sets=(daemon,)) == left


def test_reserve_and_daemons_of_each_kind_of_node_are_compared() -> None:
    """The reserve is for daemons: beside a larger one it would be taken off twice."""
    fleet = make_fleet_settings(options=(SMALL, LARGE))
    daemon = make_daemon_set(memory="50Gi", node_selector={TYPE: "large"})
    reserved = amounts(memory="2Gi")
    assert offered(fleet, daemon_sets=(daemon,), reserved=reserved) == "14Gi"


def test_where_a_daemon_lands_is_asked_once_for_the_same_template_and_fleet() -> None:
    """A thousand DaemonSets with hundreds of lines each made every plan take four seconds."""
    lines = [CountedLine(key=f"k{i}", operator="DoesNotExist") for i in range(100)]
    affinity = NodeSelector(terms=(NodeSelectorTerm(expressions=tuple(lines)),))
    daemon = make_daemon_set(memory="3Gi", node_affinity=affinity)
    fleet = make_fleet_settings()
    assert offered(fleet, daemon_sets=(daemon,)) == "13Gi"
    CountedLine.compared = 0
    assert offered(fleet, daemon_sets=(daemon,)) == "13Gi"
    assert CountedLine.compared == 0
    assert offered(make_fleet_settings(zone="us-west-2b"), daemon_sets=(daemon,)) == "13Gi"
    assert CountedLine.compared > 0

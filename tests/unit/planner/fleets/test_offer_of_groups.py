"""What a new node of an Auto Scaling group is planned to have (docs/scale-up.md)."""

from dataclasses import replace

import pytest

from reconciler.model.cluster import DaemonSet
from reconciler.model.fleet import NODE_TEMPLATE, Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId
from reconciler.model.quantity import format_amount
from reconciler.planner.settings import FleetSettings
from reconciler.planner.system_reserve import SystemReserve
from tests.builders import (
    amounts,
    make_cloud,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_option,
)
from tests.unit.planner.fleets.offered import offered

DEFAULT = SystemReserve(
    amounts=amounts(cpu=1, memory="2560Mi"), groups_as_eks=frozenset({"cpu", "memory"})
)
"""Of a config that states no reserve."""
STATED = SystemReserve(amounts=amounts(cpu=1, memory="2560Mi"))
ONLY_CPU = replace(STATED, groups_as_eks=frozenset({"memory"}))
ONLY_MEMORY = replace(STATED, groups_as_eks=frozenset({"cpu"}))
GROUP = make_fleet_settings(provider="asg", auto_scaling_group="workers", managed=False)
DAEMONS = (make_daemon_set("one", memory="1Gi"), make_daemon_set("two", memory="2Gi"))


def left_by_eks(pods: int, daemons_gib: int = 0) -> str:
    """What is left of a machine of 16 GiB, as a refusal tells it."""
    reserved_mib = 255 + 11 * pods + 100
    return format_amount("memory", (16 - daemons_gib) * 2**30 - reserved_mib * 2**20)


def tagged(memory: str) -> Fleet:
    """The group with Cluster Autoscaler's tag of this memory."""
    tags = FrozenMap({f"{NODE_TEMPLATE}/resources/memory": memory})
    return make_fleet(GROUP, id=FleetId("workers"), tags=tags)


@pytest.mark.parametrize(
    ("fleet", "reserve", "daemon_sets", "left"),
    [
        (GROUP, DEFAULT, (), left_by_eks(58)),
        (GROUP, DEFAULT, DAEMONS, left_by_eks(58, daemons_gib=3)),
        (GROUP, STATED, (), "13.5Gi"),
        (GROUP, STATED, DAEMONS, "13Gi"),
        (GROUP, ONLY_CPU, DAEMONS, left_by_eks(58, daemons_gib=3)),
        (GROUP, ONLY_MEMORY, DAEMONS, "13Gi"),
        (make_fleet_settings(), DEFAULT, (), "13.5Gi"),
    ],
)
def test_group_lacks_what_eks_and_daemons_take_unless_the_config_states_a_reserve(
    fleet: FleetSettings, reserve: SystemReserve, daemon_sets: tuple[DaemonSet, ...], left: str
) -> None:
    """The reserve of EC2 Fleets refused pods that ran for a year under Cluster Autoscaler."""
    assert offered(fleet, reserve=reserve, daemon_sets=daemon_sets) == left


@pytest.mark.parametrize("reserve", [DEFAULT, STATED, ONLY_CPU, ONLY_MEMORY])
def test_resources_tag_is_the_allocatable_of_a_node(reserve: SystemReserve) -> None:
    """It states what Cluster Autoscaler planned with: only DaemonSets take of it."""
    cloud = make_cloud(tagged("15Gi"))
    assert offered(GROUP, cloud=cloud, reserve=reserve) == "15Gi"
    assert offered(GROUP, cloud=cloud, reserve=reserve, daemon_sets=DAEMONS) == "12Gi"


def test_resources_tag_promises_no_more_than_the_size_of_the_config_has() -> None:
    """What the config states takes precedence over a tag."""
    assert offered(GROUP, cloud=make_cloud(tagged("64Gi")), reserve=DEFAULT) == "16Gi"


def test_nodes_show_more_than_a_tag_states() -> None:
    """A tag may be older than the launch template."""
    node = make_node("n", GROUP, allocatable=amounts(cpu=4, memory="14Gi", pods=58))
    assert offered(GROUP, node, cloud=make_cloud(tagged("15Gi")), reserve=DEFAULT) == "14Gi"


def test_each_type_of_a_group_lacks_its_own_part() -> None:
    """A larger machine takes more pods, for which EKS reserves more."""
    many = make_option("many", 4, "16Gi", 234)
    group = make_fleet_settings(provider="asg", options=(make_option("few"), many))
    assert offered(group, reserve=DEFAULT) == left_by_eks(234)

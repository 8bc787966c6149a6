"""Devices of young nodes of Auto Scaling groups, which carry no label of their fleet."""

from decimal import Decimal

from reconciler.model.cluster import Node
from reconciler.model.fleet import NODE_TEMPLATE, Fleet, InstanceType
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId
from reconciler.planner.planner import plan
from reconciler.planner.settings import Discovery, PlannerSettings
from tests.builders import (
    HOME,
    ago,
    amounts,
    make_cloud,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import raised

GPU = "nvidia.com/gpu"


def machine(name: str, price: str) -> InstanceType:
    """A type with a GPU."""
    return InstanceType(
        name=name,
        arch="amd64",
        cpu_milli=4000,
        memory_bytes=16 * 2**30,
        pods_max=58,
        gpus=1,
        on_demand_usd_per_hour=Decimal(price),
    )


def group(name: str, target: int, **changed: object) -> Fleet:
    """A group that launches a type of its name."""
    return Fleet(
        id=FleetId(name),
        name=name,
        provider="asg",
        region=HOME,
        state="active",
        target_capacity=target,
        instance_types=(f"{name}.type",),
        **changed,  # type: ignore[arg-type]
    )


def young(minutes: float = 1) -> Node:
    """A node whose plugin has not registered, and that shows no fleet."""
    bare = amounts(cpu=4, memory="14Gi", pods=58)
    return make_node("new", allocatable=bare, created_at=ago(60 * minutes))


def planned(
    settings: PlannerSettings, node: Node, device: str, *groups: Fleet
) -> tuple[list[str | None], list[object]]:
    """Where one pod goes that wants the device, and what is raised, with a first group's node."""
    instances = [make_instance(node, groups[0], lifecycle="on-demand")]
    pod = make_pod(requests={device: 1})
    snapshot = make_snapshot(node, pod, cloud=make_cloud(*groups, instances=instances))
    made = plan(snapshot, settings)
    return [placement.node for placement in made.placements], list(raised(made))


def test_node_of_a_found_group_has_the_devices_of_its_type_before_they_register() -> None:
    """The pod that it was launched for would get a second node of a more expensive group."""
    types = {
        instance_type.name: instance_type
        for instance_type in (machine("cheap.type", "1"), machine("dear.type", "3"))
    }
    settings = make_settings(discovery=Discovery(types=types))
    groups = group("cheap", 1), group("dear", 0)
    assert planned(settings, young(), GPU, *groups) == (["new"], [])
    late = planned(settings, young(minutes=60), GPU, *groups)
    assert late == ([None], [("dear", 0, 1)])


def test_node_of_a_named_group_has_the_devices_of_its_tags_before_they_register() -> None:
    """The pod that it was launched for would have no place, and the node end as idle."""
    fleet = make_fleet_settings(
        provider="asg", auto_scaling_group="workers", managed=False, spot=False
    )
    tags = FrozenMap({f"{NODE_TEMPLATE}/resources/example.com/dongle": "1"})
    live = group("workers", 1, tags=tags)
    made = planned(make_settings(fleet), young(), "example.com/dongle", live)
    assert made == (["new"], [])

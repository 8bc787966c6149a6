"""What a new node offers where only some of its fleet's instance types were seen."""

from dataclasses import replace

import pytest

from reconciler.planner.planner import plan
from tests.builders import (
    amounts,
    amounts_of,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_option,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.fleets.offered import offered

TYPES = {
    "small": make_option("small", 4, "16Gi"),
    "lean": make_option("lean", 4, "8Gi"),
    "double": make_option("double", 8, "32Gi"),
    "device": make_option("device", 4, "16Gi", nvidia__gpu=1),
}


@pytest.mark.parametrize(
    ("options", "shown", "cpu", "memory"),
    [
        (["small", "double"], {"double": (7, "30Gi")}, 3500, "15Gi"),
        (["small", "double"], {"double": (7, "30Gi"), "small": (3, "14Gi")}, 3000, "14Gi"),
        (["small", "double"], {"small": (3, "14Gi")}, 3000, "14Gi"),
        (["small", "lean"], {"small": (3, "12Gi")}, 3000, "6Gi"),
        (["double"], {"double": (9, "33Gi")}, 9000, "33Gi"),  # it is what the node says
        (["small", "double"], {"unlisted": (7, "30Gi")}, 3500, "15Gi"),
    ],
)
def test_smaller_type_than_was_seen_is_taken_to_offer_less_in_proportion(
    options: list[str], shown: dict[str, tuple[int, str]], cpu: int, memory: str
) -> None:
    """EC2 may launch the smaller type next: a node for each pod, and none of them fits."""
    fleet = make_fleet_settings(options=[TYPES[name] for name in options])
    live = make_fleet(fleet, len(shown))
    nodes = [
        make_node(
            f"n-{name}",
            fleet,
            allocatable=amounts(cpu=shown_cpu, memory=shown_memory, pods=58),
            labels={"node.kubernetes.io/instance-type": name},
        )
        for name, (shown_cpu, shown_memory) in shown.items()
    ]
    assert offered(fleet, *nodes, cloud=make_cloud_of(nodes, live)) == memory
    fits = make_pod(cpu=f"{cpu}m", memory="1Mi", sector="primary", requests={"pods": 58})
    for asked, bought in ((fits, 1), (make_pod(cpu=f"{cpu + 1}m", memory="1Mi"), 0)):
        blocked = [replace(node, unschedulable=True) for node in nodes]
        snapshot = make_snapshot(asked, *blocked, cloud=make_cloud_of(blocked, live))
        made = plan(snapshot, make_settings(fleet))
        assert made.fleets[0].target == len(nodes) + bought


def test_device_that_one_type_lacks_is_not_promised_because_another_type_shows_it() -> None:
    """The pod would wait beside nodes without the device."""
    fleet = make_fleet_settings(options=[TYPES["small"], TYPES["device"]])
    node = make_node(
        "n",
        fleet,
        allocatable=amounts_of({"cpu": 4, "memory": "15Gi", "pods": 58, "nvidia/gpu": 1}),
        labels={"node.kubernetes.io/instance-type": "device"},
        unschedulable=True,
    )
    asks = make_pod(cpu="1m", memory="1Mi", requests={"nvidia/gpu": 1})
    snapshot = make_snapshot(asks, node, cloud=make_cloud_of([node], make_fleet(fleet, 1)))
    made = plan(snapshot, make_settings(fleet))
    assert [reason.code for reason in made.unplaceable[0].reasons] == ["insufficient-nvidia/gpu"]

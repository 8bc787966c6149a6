"""The sweep over the wire: a fleet is deleted and its instance runs on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox


def states(world: World, fleet_id: str) -> list[str]:
    """The states of the instances that a fleet launched."""
    tag: Any = {"Name": "tag:aws:ec2:fleet-id", "Values": [fleet_id]}
    pages = world.ec2.describe_instances(Filters=[tag])["Reservations"]
    return [i["State"]["Name"] for page in pages for i in page["Instances"]]


def test_instance_of_a_deleted_fleet_is_swept_when_its_node_is_empty(
    program: Callable[..., Program], world: World, sandbox: Sandbox, config_file: Path
) -> None:
    """Terraform deletes a fleet and leaves its nodes: nobody would ever end them."""
    config_file.write_text(CONFIG + "instance_init_time: 3\n")
    fleet_id = create_fleet(sandbox.aws_url, "small", target=1, sector="lost")

    def joined() -> bool:
        return any(n.metadata.labels.get("fleet") == "lost-small" for n in world.nodes())

    until(lambda: f"{len(world.nodes())} nodes", joined)
    world.ec2.delete_fleets(FleetIds=[fleet_id], TerminateInstances=False)
    running = program()
    found = running.until_event(
        "action_applied",
        lambda e: e["action"] == "terminate-instance" and e["fleet"] == "lost-small",
    )
    assert found["after"] == "terminated"
    assert fleet_id in found["reason"]
    order = [e["action"] for e in running.events("action_applied") if e.get("node")]
    assert order.index("taint-node") < order.index("terminate-instance")
    until(
        lambda: f"{states(world, fleet_id)}",
        lambda: set(states(world, fleet_id)) <= {"shutting-down", "terminated"},
    )
    assert running.events("orphans_found")

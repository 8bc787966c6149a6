"""An instance that nobody may end: the others of its fleet go, and it is left in peace."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.actions import DRAINING_TAINT
from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.commands import reconciler
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox

FLEET = "steady-small"
SECTOR = """\
  steady:
    kind: memory
    fleets:
    - {size: small, min_capacity: 0, max_capacity: 20, spot: false}
"""
CYCLES = 5
"""So many more must change nothing."""


class Fleet:
    """An on-demand fleet (EC2 protects no spot instances) and its nodes."""

    def __init__(self, world: World, fleet_id: str) -> None:
        self._world = world
        self._id = fleet_id

    def living(self) -> list[str]:
        """Its instances that are not ending."""
        tag: Any = {"Name": "tag:aws:ec2:fleet-id", "Values": [self._id]}
        state: Any = {"Name": "instance-state-name", "Values": ["pending", "running"]}
        pages = self._world.ec2.describe_instances(Filters=[tag, state])["Reservations"]
        return sorted(i["InstanceId"] for page in pages for i in page["Instances"])

    def nodes(self) -> list[Any]:
        """Its nodes."""
        return [n for n in self._world.nodes() if n.metadata.labels.get("fleet") == FLEET]

    def protect(self, instance: str, *, protected: bool) -> None:
        """Set or end the protection of an instance from termination."""
        self._world.ec2.modify_instance_attribute(
            InstanceId=instance, DisableApiTermination={"Value": protected}
        )

    def is_at_rest(self, instance: str) -> bool:
        """Whether this instance alone is left, takes pods, and is what the target asks for."""
        nodes = self.nodes()
        tainted = any(t.key == DRAINING_TAINT for n in nodes for t in n.spec.taints or ())
        alone = self.living() == [instance] and len(nodes) == 1
        return alone and not tainted and self._world.targets()[FLEET] == 1

    def end(self) -> None:
        """Take it away."""
        for each in self.living():
            self.protect(each, protected=False)
        self._world.remove_fleets("steady")


@pytest.fixture
def fleet(world: World, sandbox: Sandbox) -> Iterator[Fleet]:
    """Three nodes that nobody needs."""
    made = Fleet(world, create_fleet(sandbox.aws_url, "small", 3, sector="steady", spot=False))
    until(lambda: f"{len(made.nodes())} nodes", lambda: len(made.nodes()) == 3)
    yield made
    made.end()


def test_protected_instance_is_kept_with_its_reason_and_the_others_end(
    program: Callable[..., Program],
    world: World,
    sandbox: Sandbox,
    config_file: Path,
    fleet: Fleet,
) -> None:
    """It would be asked for in each cycle, tainted and empty, with a target below what runs."""
    quick = CONFIG.replace("max_logging_interval: 5", "max_logging_interval: 1")
    config_file.write_text(quick + SECTOR)
    instance = fleet.living()[1]
    fleet.protect(instance, protected=True)
    sandbox.control.forget_calls()
    running = program()
    refused = running.until_event("action_refused", lambda e: e["action"] == "terminate-instance")
    assert "disableApiTermination" in refused["detail"]
    until(
        lambda: f"{fleet.living()} {world.targets()} {len(fleet.nodes())} nodes",
        lambda: fleet.is_at_rest(instance),
        process=running.process,
    )
    calls = len(sandbox.control.calls(action="TerminateInstances"))
    targets = set[int]()
    last = running.events("cycle_ended")[-1]["cycle"] + CYCLES

    def goes_on() -> bool:
        targets.add(world.targets()[FLEET])
        return any(event["cycle"] >= last for event in running.events("cycle_ended"))

    until(lambda: f"no cycle {last}", goes_on, process=running.process)
    assert targets == {1}
    assert len(running.events("action_refused")) == 1
    (node,) = fleet.nodes()
    address = ("--status-url", running.address())
    told = reconciler(
        sandbox, "explain", "node", node.metadata.name, "--config", str(config_file), *address
    ).stdout
    assert "termination-protected" in told
    assert f"--no-disable-api-termination --instance-id {instance}" in told
    running.end()
    following = program()
    following.until_event("cycle_ended", lambda e: e["cycle"] > CYCLES)
    assert fleet.is_at_rest(instance)
    assert len(sandbox.control.calls(action="TerminateInstances")) == calls

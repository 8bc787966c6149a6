"""What the capacity loop does when somebody sends an old capacity: a hand-run `terraform apply`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(600)]
FLEET = "primary-small"


@pytest.fixture
def world() -> Iterator[World]:
    """AWS whose instances take their time, and a cluster."""
    settings = SandboxSettings(
        delays=Delays(launch_seconds=4, terminate_seconds=0.5, modify_seconds=0.2),
        joiner=JoinerSettings(join_seconds=0.3, remove_seconds=0.3),
    )
    with Sandbox(settings) as sandbox:
        create_fleet(sandbox.aws_url, "small")
        seen = World(sandbox)
        yield seen
        seen.close()


def send_old_capacity(world: World, total: int) -> None:
    """What the Terraform provider sends with a change of types, from a plan of long ago."""
    (fleet,) = world.ec2.describe_fleets()["Fleets"]
    world.ec2.modify_fleet(
        FleetId=fleet["FleetId"],
        ExcessCapacityTerminationPolicy="no-termination",
        TargetCapacitySpecification={"TotalTargetCapacity": total},
    )


def raises(program: Program) -> list[dict[str, object]]:
    """The raises that the capacity loop has carried out so far."""
    found = program.events("action_applied")
    return [each for each in found if each["action"] == "set-capacity"]


def test_raise_that_was_rolled_back_is_made_again_and_no_node_ends(
    world: World, tmp_path: Path, closing_lines: list[str]
) -> None:
    """Whoever applies past `ci apply` may cost a cycle, never a pod."""
    file = tmp_path / "sectors.yaml"
    file.write_text(CONFIG)
    with Program(world.sandbox, file) as program:
        program.until_ready()
        world.add_pods(["first"], cpu="3", seconds=600)
        world.until_pods(lambda phases: phases["first"] == "Running")
        before = len(raises(program))
        world.add_pods(["second", "third"], cpu="3", seconds=600)
        until(
            lambda: program.log_text, lambda: len(raises(program)) > before, process=program.process
        )
        send_old_capacity(world, 0)
        world.until_pods(lambda phases: set(phases.values()) == {"Running"})
        again = raises(program)[before:]
        assert len(again) >= 2, again
        assert world.targets()[FLEET] >= 3
        assert set(world.instance_states()) <= {"pending", "running"}
        closing_lines.append(
            f"targets set by the capacity loop around a rollback to 0: {len(again)}"
        )

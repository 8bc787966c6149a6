"""Terraform and the capacity loop on the same fleets: neither undoes what the other did."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import Start, World
from tests.sandbox.faults.conftest import CONFIG, QUICK
from tests.terraform.program import TerraformProgram, find_terraform
from tests.waiting import until

pytestmark = [pytest.mark.sandbox, pytest.mark.terraform, pytest.mark.timeout(600)]

REGION = "us-west-2"
TERRAFORM = "Terraform"
WAVES = 3


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """AWS and a cluster without any fleet: Terraform makes them."""
    with Sandbox(QUICK) as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The root module that the sector config renders to."""

    terraform: TerraformProgram
    folder: Path
    config_file: Path
    sandbox: Sandbox
    ids: AccountIds

    def render(self, ami: str) -> None:
        """Write the config with an AMI, and what `reconciler render` makes of it."""
        subnets = ", ".join(f"{zone}: {name}" for zone, name in self.ids.subnet_ids.items())
        infrastructure = (
            f"terraform:\n  ami: {ami}\n  security_group_id: {self.ids.security_group_id}\n"
            f"  private_subnet_ids: {{{subnets}}}\n"
        )
        self.config_file.write_text(CONFIG + infrastructure)
        assert run(["render", "--config", str(self.config_file), "--out", str(self.folder)]) == 0

    def call(self, *arguments: str) -> tuple[int, str]:
        """One call of terraform: exit code and all that it printed."""
        aws = {k: v for k, v in self.sandbox.environment().items() if k.startswith("AWS_")}
        done = self.terraform.run(self.folder, *arguments, **aws)
        return done.returncode, done.stdout + done.stderr

    def apply(self) -> None:
        """Apply without asking."""
        code, printed = self.call("apply", "-auto-approve")
        assert code == 0, printed


@pytest.fixture
def root(sandbox: Sandbox, config_file: Path, tmp_path: Path) -> Root:
    """Rendered and applied."""
    made = Root(
        terraform=find_terraform(),
        folder=tmp_path / "root",
        config_file=config_file,
        sandbox=sandbox,
        ids=bootstrap_account(sandbox.aws_url, REGION),
    )
    made.render(made.ids.ami)
    made.terraform.init(made.folder)
    made.apply()
    return made


def accepted(sandbox: Sandbox, user_agent: str) -> int:
    """How many changes of fleets EC2 has taken from a client."""
    calls = sandbox.control.calls(action="ModifyFleet", user_agent=user_agent)
    return sum(call["status"] == 200 for call in calls)


@pytest.mark.nightly
def test_plan_is_empty_after_many_capacity_changes_and_apply_leaves_targets_alone(
    root: Root, program: Start, world: World, sandbox: Sandbox
) -> None:
    """A month of scaling must not show in a plan, nor a new image undo it."""
    running = program()
    for wave in range(WAVES):
        world.add_pods([f"wave-{wave}-{n}" for n in range(2 + 4 * wave)], cpu="3", seconds=1)
        world.until_pods(lambda phases: set(phases.values()) == {"Succeeded"})
        world.until_idle()
    changes = accepted(sandbox, "fleet-reconciler")
    assert changes >= 2 * WAVES
    code, printed = root.call("plan", "-detailed-exitcode")
    assert code == 0, printed
    assert "No changes." in printed

    world.add_pods(["stays-1", "stays-2", "stays-3"], cpu="3")
    world.until_pods(lambda phases: list(phases.values()).count("Running") == 3)
    until(
        "as many nodes as the targets say",
        lambda: len(world.nodes()) == sum(world.targets().values()),
    )
    targets, nodes = world.targets(), {node.metadata.uid for node in world.nodes()}
    assert sum(targets.values()) > 0
    templates = latest_versions(world)
    root.render("ami-0123456789abcdef0")
    root.apply()
    assert latest_versions(world) > templates
    assert world.targets() == targets
    assert accepted(sandbox, TERRAFORM) == 0
    assert {node.metadata.uid for node in world.nodes()} == nodes
    code, printed = root.call("plan", "-detailed-exitcode")
    assert code == 0, printed
    assert running.process.poll() is None
    world.remove_pods()
    world.until_idle()


def latest_versions(world: World) -> list[int]:
    """Of the fleets' launch templates."""
    found = world.ec2.describe_launch_templates()["LaunchTemplates"]
    ours = [each for each in found if re.match(r"analytics|primary", each["LaunchTemplateName"])]
    assert len(ours) == 2
    return sorted(int(each["LatestVersionNumber"]) for each in ours)

"""The recipes of docs/examples for spot rescheduler and descheduler, as they stand there."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import utils

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
QUICK = ("--sleep", "1", "--listen", "127.0.0.1:0")


class Recipe:
    """A folder of docs/examples in the sandbox.

    Args:
        world: The sandbox.
        name: Of its folder.
        folder: The program's log comes to lie beside its config: a copy of that goes here.
    """

    def __init__(self, world: World, name: str, folder: Path) -> None:
        self._world = world
        self.config = Path(shutil.copy(EXAMPLES / name / "sectors.yaml", folder))
        workload = (EXAMPLES / name / "workload.yaml").read_text()
        self._objects = list(yaml.safe_load_all(workload))

    def apply(self) -> None:
        """Apply the workload, and wait until its pods run."""
        create: Any = utils.create_from_dict
        for each in self._objects:
            create(self._world.api, each)
        replicas = next(o["spec"]["replicas"] for o in self._objects if o["kind"] == "Deployment")
        self.until("its pods run", lambda: len(self.nodes_of_pods()) == replicas)

    def nodes_of_pods(self) -> list[str]:
        """The nodes of the pods that run, each as often as it has pods."""
        pods = self._world.core.list_namespaced_pod("default").items
        running = [p for p in pods if p.status.phase == "Running"]
        return [p.spec.node_name for p in running if p.metadata.deletion_timestamp is None]

    def until(self, what: str, holds: Any, program: Program | None = None) -> None:
        """Wait for something about the cluster."""
        until(lambda: f"{what}\n{program.log_text[-4000:] if program else ''}", holds)

    def lifecycles(self) -> dict[str, str]:
        """The nodes with the label that tells spot from on-demand."""
        nodes = self._world.nodes()
        return {n.metadata.name: n.metadata.labels["lifecycle"] for n in nodes}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """AWS without fleets, and a cluster; quick ones."""
    settings = SandboxSettings(
        delays=Delays(launch_seconds=0.5, terminate_seconds=0.5, modify_seconds=0.2),
        joiner=JoinerSettings(join_seconds=0.3, remove_seconds=0.3),
    )
    with Sandbox(settings) as running:
        yield running


def evicted(program: Program) -> list[str]:
    """The policies of the evictions so far."""
    applied = program.events("action_applied")
    return [each["policy"] for each in applied if each["action"] == "evict-pod"]


def test_pods_move_to_spot_nodes_and_on_demand_nodes_go(
    sandbox: Sandbox, world: World, tmp_path: Path
) -> None:
    """A recipe that does not work as it stands is worse than none."""
    recipe = Recipe(world, "spot-rescheduler", tmp_path)
    fleets = yaml.safe_load(recipe.config.read_text())["sectors"]["primary"]["fleets"]
    create_fleet(sandbox.aws_url, "medium", 1, spot=False, taints=fleets[1]["taints"])
    recipe.until("the on-demand node joins", lambda: len(recipe.lifecycles()) == 1)
    create_fleet(sandbox.aws_url, "small")
    recipe.apply()
    with Program(sandbox, recipe.config, *QUICK) as program:
        recipe.until(
            "all run on spot nodes, and no on-demand node is left",
            lambda: (
                len(recipe.nodes_of_pods()) == 4
                and set(recipe.lifecycles().values()) == {"Ec2Spot"}
            ),
            program,
        )
        assert set(evicted(program)) == {"spot-reschedule"}
        assert len(evicted(program)) == 4
        program.end()


def test_pods_leave_a_node_that_is_tainted_later(
    sandbox: Sandbox, world: World, tmp_path: Path
) -> None:
    """kube-scheduler asks about taints once, when it places a pod."""
    recipe = Recipe(world, "descheduler", tmp_path)
    create_fleet(sandbox.aws_url, "small", 3)
    recipe.until("three nodes join", lambda: len(recipe.lifecycles()) == 3)
    recipe.apply()
    with Program(sandbox, recipe.config, *QUICK) as program:
        program.until_ready()
        tainted = recipe.nodes_of_pods()[0]
        had = recipe.nodes_of_pods().count(tainted)
        taint = {"key": "team", "value": "ml", "effect": "NoSchedule"}
        world.core.patch_node(tainted, {"spec": {"taints": [taint]}})
        recipe.until(
            "no pod runs there any more",
            lambda: len(recipe.nodes_of_pods()) == 3 and tainted not in recipe.nodes_of_pods(),
            program,
        )
        assert evicted(program) == ["deschedule"] * had
        program.end()

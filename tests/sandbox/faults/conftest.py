"""One sandbox with two spot fleets for the folder, whole again for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.faults.script import FaultScript
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import Start, World, programs
from tests.waiting import until

CONFIG = """\
cluster: analytics
regions: [us-west-2]
sleep_interval: 1
instance_init_time: 8
unready_time: 5
default_sector: primary
max_logging_interval: 1
listen: 127.0.0.1:0
scale_in: {idle_threshold: 1s, max_empty_at_once: 100}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, min_capacity: 0, max_capacity: 20}
    - {size: medium, min_capacity: 0, max_capacity: 20}
"""

Put = Callable[..., None]


QUICK = SandboxSettings(
    delays=Delays(launch_seconds=0.3, terminate_seconds=0.3, modify_seconds=0.1, retry_seconds=2),
    cluster=ClusterSettings(job_seconds=2.0),
    joiner=JoinerSettings(join_seconds=0.2, remove_seconds=0.2),
)


@pytest.fixture(scope="package")
def sandbox() -> Iterator[Sandbox]:
    """AWS and a cluster, quick ones."""
    with Sandbox(QUICK) as running:
        for size in ("small", "medium"):
            create_fleet(running.aws_url, size)
        yield running


@pytest.fixture
def world(sandbox: Sandbox) -> Iterator[World]:
    """The sandbox's users' view, without anything that an earlier test left behind."""
    seen = World(sandbox)
    sandbox.control.clear_faults()
    sandbox.kube_control.clear_faults()
    forget_fleets(seen)
    sandbox.control.forget_calls()
    sandbox.kube_control.forget_calls()
    yield seen
    sandbox.control.clear_faults()
    sandbox.kube_control.clear_faults()
    seen.remove_pods()
    seen.close()


def forget_fleets(world: World) -> None:
    """Take away what earlier processes remembered: cool-offs of fleets, and who leads."""
    make: Any = client.CoordinationV1Api
    leases: Any = make(world.api)
    for lease in leases.list_lease_for_all_namespaces().items:
        if lease.metadata.name == "fleet-reconciler":
            leases.delete_namespaced_lease(lease.metadata.name, lease.metadata.namespace)


@pytest.fixture
def put(sandbox: Sandbox) -> Put:
    """Puts the parts of a script in force at run time."""

    def send(**script: Any) -> None:
        sandbox.put_faults(FaultScript.model_validate(script))

    return send


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """The sector config of the tests."""
    file = tmp_path / "sectors.yaml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def program(sandbox: Sandbox, config_file: Path) -> Iterator[Start]:
    """Starts `reconciler run`; what still runs after the test is killed."""
    yield from programs(sandbox, config_file)


def scale(world: World, size: str, total: int) -> None:
    """Give a fleet a target, as a person would."""
    for fleet in world.ec2.describe_fleets()["Fleets"]:
        if {"Key": "size", "Value": size} in fleet["Tags"]:
            world.ec2.modify_fleet(
                FleetId=fleet["FleetId"],
                ExcessCapacityTerminationPolicy="no-termination",
                TargetCapacitySpecification={"TotalTargetCapacity": total},
            )


def empty(world: World) -> None:
    """Take all capacity away at once, without a program that would have to drain it."""
    for size in ("small", "medium"):
        scale(world, size, 0)
    control = world.sandbox.control
    control.terminate([each["instance_id"] for each in control.instances()[1]])
    until(lambda: f"{len(world.nodes())} nodes stay", lambda: not world.nodes())


def unshown(sandbox: Sandbox) -> list[Any]:
    """Faults in force that have not shown: a test that met none of them proves nothing."""
    aws = sandbox.control.faults()
    lists = [part for part in aws.values() if isinstance(part, list)]
    kept = [each for part in [*lists, sandbox.kube_control.faults()] for each in part]
    return [each for each in kept if not each["shown"]]

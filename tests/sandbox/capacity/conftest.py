"""One sandbox per module: two fleets without instances, and no pods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import (
    CONFIG,
    InterpretedProgram,
    Start,
    World,
    programs,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """AWS and a cluster, quick ones."""
    settings = SandboxSettings(
        delays=Delays(launch_seconds=0.5, terminate_seconds=0.5, modify_seconds=0.2),
        cluster=ClusterSettings(job_seconds=3.0),
        joiner=JoinerSettings(join_seconds=0.3, remove_seconds=0.3),
    )
    with Sandbox(settings) as running:
        for size in ("small", "medium"):
            create_fleet(running.aws_url, size)
        yield running


@pytest.fixture
def world(sandbox: Sandbox) -> Iterator[World]:
    """The sandbox's users' view."""
    seen = World(sandbox)
    yield seen
    seen.remove_pods()
    seen.close()


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


@pytest.fixture
def interpreted(sandbox: Sandbox, config_file: Path) -> Iterator[Start]:
    """The same, each time with a Python of its own."""
    yield from programs(sandbox, config_file, InterpretedProgram)

"""The capacity loop over its ports."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from reconciler.adapters.memory import FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.capacity_loop.config_reload import ConfigReloader
from reconciler.bootstrap.capacity_loop.config_source import ConfigSource
from reconciler.bootstrap.capacity_loop.loop import build_loop
from reconciler.executor.ports import Ports
from reconciler.loops.reporters.combined import Reporters
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState
from tests.builders import AWAY, HOME

CONFIG = f"""\
cluster: c
regions: [{HOME}]
allow_destroy: [primary-old]
sectors: {{primary: {{kind: memory, fleets: [{{size: small}}]}}}}
"""


class Unchanged:
    """A config that nobody changes."""

    pause_seconds = 1.0

    def follow(self) -> bool:
        """Return that nothing changed."""
        return False


class AskedCloud(MemoryCloud):
    """A cloud that keeps where it was asked."""

    def __init__(self, world: MemoryWorld) -> None:
        super().__init__(world)
        self.asked: list[tuple[Region, ...]] = []

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Keep the regions."""
        self.asked.append(tuple(regions))
        return super().observe(regions)


def test_region_that_the_config_named_before_is_asked_while_nodes_are_to_go_there(
    tmp_path: Path,
) -> None:
    """Nodes that EC2 does not show are never drained, and their fleet is never removed."""
    file = tmp_path / "sectors.yaml"
    file.write_text(CONFIG)
    world = MemoryWorld()
    labels = FrozenMap({"fleet": "primary-old", "topology.kubernetes.io/region": AWAY})
    old = world.add_fleet(
        FleetShape(name="primary-old", region=AWAY, zone=f"{AWAY}a", labels=labels), 1
    )
    world.advance(600)
    cloud, clock = AskedCloud(world), SystemClock()
    loop = build_loop(
        ConfigSource(str(file), {}, lambda: None),
        clock,
        Ports(cluster=MemoryCluster(world), clouds={"ec2-fleet": cloud, "asg": cloud}),
        Reporters([], clock.monotonic_seconds),
        cast("ConfigReloader", Unchanged()),
        leads=lambda: True,
        may_act=lambda: True,
    )
    shown = loop.observe().cloud
    assert shown is not None
    assert shown.fleets == ()
    shown = loop.observe().cloud
    assert shown is not None
    assert {fleet.id for fleet in shown.fleets} == {old}
    assert {HOME, AWAY} == set(cloud.asked[-1])

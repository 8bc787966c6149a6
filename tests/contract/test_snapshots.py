"""A snapshot taken live and read from its files is the picture that the loop had."""

from dataclasses import replace
from pathlib import Path

from reconciler.adapters.files import CloudFiles, FileCluster
from reconciler.records.snapshot import (
    CLUSTER_FILE,
    cloud_snapshot_files,
    encode_cluster_snapshot,
)
from tests.contract import cloud_worlds, cluster_worlds


def test_cluster_snapshot_reads_back_to_what_was_observed(tmp_path: Path) -> None:
    """A bug report that plans differently from the cluster it came from helps nobody."""
    world = cluster_worlds.OverHttp()
    try:
        world.add_node("node-a")
        world.bound_pod()
        world.add_daemon("agent")
        world.add_budget("guard", {"app": "web"}, 0)
        world.port.remember({"fleet-reconciler.io/last-drain": "2026-01-31T12:00:00Z"})
        live = world.until(
            lambda s: (
                s.last_drain_at is not None
                and sum(pod.ready for pod in s.pods) == 2
                and any(space.name == "fleet-reconciler" for space in s.namespaces)
            )
        )
        path = tmp_path / CLUSTER_FILE
        path.write_bytes(encode_cluster_snapshot(world.port.raw()))
    finally:
        world.close()
    expected = replace(live, relists=1, server_time=None)  # files know no clock
    assert FileCluster([str(path)]).observe() == expected


def test_cloud_snapshot_reads_back_to_what_was_observed(tmp_path: Path) -> None:
    """Histories and template versions must survive the files, errors above all."""
    with cloud_worlds.emulated_aws() as emulated:
        world = cloud_worlds.OverHttp(emulated)
        fleet_id = world.add_fleet("primary-small", 1)
        world.advance(60)
        world.refuse_launches(fleet_id, "InsufficientInstanceCapacity")
        world.port.set_target_capacity(cloud_worlds.HOME, fleet_id, 3)
        world.advance(120)
        regions = [cloud_worlds.HOME, cloud_worlds.AWAY]
        live = world.port.observe(regions)
        paths = []
        for region, answers in world.port.raw(regions).items():
            for name, body in cloud_snapshot_files(region, answers).items():
                path = tmp_path / name
                path.write_bytes(body)
                paths.append(str(path))
        cluster = world.cluster
        world.close()
    offline = CloudFiles(paths).of_region(cloud_worlds.HOME, cluster=cluster)
    assert live.fleets[0].launch_errors
    # Who answered is of use only while observations are merged, and is in no file.
    assert offline.observe(regions) == replace(live, server_time=None, providers=frozenset())

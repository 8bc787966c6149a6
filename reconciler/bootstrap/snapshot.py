"""Saves what a live cycle would see, in the formats of offline planning."""

import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from reconciler.adapters.aws import home_region
from reconciler.adapters.kubernetes import KubernetesCluster, connect, lease_home
from reconciler.bootstrap.capacity_loop.config_source import ConfigSource
from reconciler.bootstrap.planning.clouds import aws_clouds
from reconciler.bootstrap.planning.providers import observed, providers_of
from reconciler.config.environment import Flags
from reconciler.machine.whole_file import put_whole
from reconciler.model.errors import Forbidden, InputError
from reconciler.model.ids import REGION_FORM, Region
from reconciler.records.aws import Answer
from reconciler.records.snapshot import (
    CLUSTER_FILE,
    cloud_snapshot_files,
    encode_cluster_snapshot,
)

_AWS_FILE: Final = re.compile(rf"aws-{REGION_FORM}(?:-[\w-]+-(?:history|active))?\.json")
"""The names that `cloud_snapshot_files` gives. Others that begin like them, such as
`aws-auth.json`, are somebody else's."""


def save_snapshot(file: str, flags: Flags, directory: Path) -> tuple[Path, ...]:
    """Read the live cluster and every region once and write the answers, without secrets.

    Files of an older snapshot in the directory are replaced, others stay.

    Returns:
        The files, the cluster's first.

    Raises:
        ConfigError: The config has faults.
        UsageError: No cluster is named.
        PortError: The API server or a region did not answer; nothing was written.
        InputError: The directory cannot be written to.
    """
    source = ConfigSource(file, flags, home_region)
    files: dict[str, bytes] = {}
    answers: dict[Region, list[Answer]] = {}
    with aws_clouds(lambda: source.settings) as clouds:
        # EC2 first, as in a live cycle.
        for provider, cloud in observed(clouds, source.settings).items():
            try:
                raw = cloud.raw(source.settings.observed_regions)
            except Forbidden:
                # A live cycle also continues without rights to what the config no longer has.
                if provider in providers_of(source.settings):
                    raise
                continue
            for region, answer in raw.items():
                answers.setdefault(region, []).extend(answer)
    for region, found in answers.items():
        files |= cloud_snapshot_files(region, found)
    config = source.config
    home = lease_home(config.leader_election.namespace, config.kubeconfig or config.kube_context)
    with closing(
        KubernetesCluster(connect(config.kubeconfig, config.kube_context), lease_home=home)
    ) as cluster:
        files = {CLUSTER_FILE: encode_cluster_snapshot(cluster.raw()), **files}
    return write_snapshot(files, directory)


def write_snapshot(files: Mapping[str, bytes], directory: Path) -> tuple[Path, ...]:
    """Write all files, readable by their owner only: names of workloads are confidential.

    Then the files that an older snapshot of other regions or fleets has left are removed.

    Returns:
        The files, in their order.

    Raises:
        InputError: The directory cannot be written to.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = tuple(_write_file(directory / name, body) for name, body in files.items())
        for old in directory.iterdir():
            if _AWS_FILE.fullmatch(old.name) and old.name not in files:
                old.unlink()
    except OSError as error:
        where = str(error.filename or directory)
        raise InputError(where, f"cannot be written: {error.strerror}") from error
    return written


def _write_file(path: Path, body: bytes) -> Path:
    with put_whole(path) as part:
        part.touch(mode=0o600)
        part.write_bytes(body)
    return path

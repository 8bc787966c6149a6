"""The world that is measured in: EC2 Fleets with instances, a control plane full of their nodes."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.sandbox.aws.process import AwsProcess
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.sandbox.joiner.node_object import InstanceFacts
from tests.benchmarks.e2e.etcd import Etcd
from tests.benchmarks.e2e.objects import (
    APPLICATIONS,
    ready_node,
    replica_set,
    running_pods,
)
from tests.benchmarks.e2e.waiting import until
from tests.sandbox.capacity.fleets import REGION, create_fleet

FULL = "medium"
"""The size of the nodes that are there, 8 vCPU; demand is for others."""
SOLO = "small"
"""4 vCPU: takes one of the single pods."""
BULK = "large"
"""16 vCPU: takes many pods of a burst."""
_LEASE_SECONDS = 100.0
"""Renewals of 1,000 leases every 10 s would keep two cores busy alone."""
_CONFIG = """\
cluster: analytics
regions: [us-west-2]
sleep_interval: 20
instance_init_time: 24h
default_sector: primary
listen: 127.0.0.1:0
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small}
    - {size: medium}
    - {size: large}
"""


def say(text: str) -> None:
    """A line for whoever waits."""
    sys.stdout.write(f"  {text}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the measurements work with."""

    aws: AwsProcess
    plane: ControlPlane
    api: Transport
    config: Path
    nodes: tuple[str, ...]
    fleets: Mapping[str, str]
    """Fleet ids by size."""

    def environment(self) -> dict[str, str]:
        """What the reconciler needs to find both sides."""
        return {
            "AWS_ENDPOINT_URL": self.aws.url,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "KUBECONFIG": str(self.plane.kubeconfig),
        }

    def etcd(self) -> Etcd:
        """A connection to the cluster's store."""
        return Etcd(self.plane.etcd_url)


@contextmanager
def make_world(programs: Path, nodes: int, pods_per_node: int) -> Iterator[World]:
    """Start everything; nodes are Ready and their pods run when the API server comes up."""
    delays = Delays(launch_seconds=0.5, modify_seconds=0.2)
    with (
        tempfile.TemporaryDirectory(prefix="bench-e2e-") as folder,
        AwsProcess(delays=delays) as aws,
    ):
        fleets = {
            SOLO: create_fleet(aws.url, SOLO),
            BULK: create_fleet(aws.url, BULK),
            FULL: create_fleet(aws.url, FULL, nodes),
        }
        instances = _instances(aws, nodes)
        say(f"{len(instances)} instances run")
        names: list[str] = []

        def seed(url: str) -> None:
            names.extend(_seed(url, instances, pods_per_node))

        settings = ClusterSettings(lease_seconds=_LEASE_SECONDS)
        with ControlPlane(programs, Path(folder, "plane"), settings, seed=seed) as plane:
            say("the API server serves")
            api = connect(str(plane.kubeconfig))
            config = Path(folder, "sectors.yaml")
            config.write_text(_CONFIG)
            try:
                yield World(
                    aws=aws,
                    plane=plane,
                    api=api,
                    config=config,
                    nodes=tuple(names),
                    fleets=fleets,
                )
            finally:
                api.close()


def _instances(aws: AwsProcess, wanted: int) -> list[InstanceFacts]:
    """The instances of the full fleet, all running."""
    found: list[InstanceFacts] = []

    def running() -> bool:
        _, answer = aws.control.instances()
        found[:] = [each for each in map(InstanceFacts.of, answer) if each.state == "running"]
        return len(found) >= wanted

    until(f"{wanted} instances run", running, 300, 1.0)
    return found


def _seed(url: str, instances: list[InstanceFacts], pods_per_node: int) -> list[str]:
    """Put nodes, applications and their pods into etcd; returns the nodes' names."""
    etcd = Etcd(url)
    nodes = [ready_node(facts) for facts in instances]
    names = [body["metadata"]["name"] for _, body in nodes]
    replicas = [len(names) * pods_per_node // APPLICATIONS] * APPLICATIONS
    for number in range(len(names) * pods_per_node % APPLICATIONS):
        replicas[number] += 1
    sets = [replica_set(number, count) for number, count in enumerate(replicas)]
    owners = {number: _owner(body) for number, (_, body) in enumerate(sets)}
    etcd.put(nodes)
    etcd.put(sets)
    etcd.put(running_pods(names, pods_per_node, owners))
    etcd.close()
    say(f"{len(names) * pods_per_node} pods on {len(names)} nodes are in etcd")
    return names


def _owner(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }

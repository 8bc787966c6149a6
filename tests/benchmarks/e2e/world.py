"""The world that is measured in: EC2 Fleets with instances, a control plane full of their nodes."""

import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.sandbox.aws.process import AwsProcess
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.sandbox.joiner.node_object import InstanceFacts
from tests.benchmarks.e2e.encoding import Encoder
from tests.benchmarks.e2e.etcd import Etcd
from tests.benchmarks.e2e.objects import (
    APPLICATIONS,
    ready_node,
    replica_set,
    running_pods,
)
from tests.benchmarks.e2e.process import cpu_seconds
from tests.benchmarks.e2e.progress import say
from tests.benchmarks.e2e.waiting import pause, until
from tests.sandbox.capacity.fleets import REGION, create_fleet

FULL = "medium"
"""The size of the nodes that are there, 8 vCPU; demand is for others."""
SOLO = "small"
"""4 vCPU: takes one of the single pods."""
BULK = "large"
"""16 vCPU: takes many pods of a burst."""
_CALM_SECONDS = 5.0
_CALM_CORES = 0.5
_SETTLED_SECONDS = 300.0
_AGE_SECONDS = 180.0
_POD_START_SECONDS = 3.0
"""Churned pods are written as running before that: KWOK has no part in them."""
_PROGRESS_PODS = 5000
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


_API_SERVER = "kube-apiserver"


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
    launched_at: float
    """When the nodes' instances ran, by the monotonic clock."""

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

    def encoder(self) -> Encoder:
        """A way to have pods encoded."""
        return Encoder(self.plane.kubeconfig, self.plane.url)

    def settle(self) -> None:
        """Wait until controllers and KWOK have taken the cluster in: they use little CPU then."""

        def calm() -> bool:
            before = self._cpu_seconds()
            pause(_CALM_SECONDS)
            return self._cpu_seconds() - before < _CALM_CORES * _CALM_SECONDS

        until("the control plane is calm", calm, _SETTLED_SECONDS, 0)

    def age(self) -> None:
        """Wait until the nodes' instances are no new ones.

        EC2's filter by launch time knows minutes, and the adapter allows for a minute's skew: of a
        thousand instances that have just been launched it would read all for each pod.
        """
        pause(max(0.0, self.launched_at + _AGE_SECONDS - time.monotonic()))

    def others_held(self) -> AbstractContextManager[None]:
        """Hold all of the control plane but what carries objects to their watchers."""
        return self._held(self.plane.processes.keys() - {"etcd", _API_SERVER})

    def api_server_held(self) -> AbstractContextManager[None]:
        """Hold the API server, so that it learns of what is written to etcd at one moment."""
        return self._held({_API_SERVER})

    @contextmanager
    def _held(self, names: AbstractSet[str]) -> Iterator[None]:
        held = [self.plane.processes[name] for name in sorted(names)]
        for each in held:
            each.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for each in held:
                each.send_signal(signal.SIGCONT)

    def _cpu_seconds(self) -> float:
        return sum(cpu_seconds(process.pid) for process in self.plane.processes.values())


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
        launched_at = time.monotonic()
        say(f"{len(instances)} instances run")
        names: list[str] = []

        def seed(url: str) -> None:
            names.extend(_seed(url, instances, pods_per_node))

        settings = ClusterSettings(
            lease_seconds=_LEASE_SECONDS, pod_start_seconds=_POD_START_SECONDS
        )
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
                    launched_at=launched_at,
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
    etcd.seed(nodes)
    etcd.seed(sets)
    pods = running_pods(names, pods_per_node, owners)
    for first in range(0, len(names) * pods_per_node, _PROGRESS_PODS):
        etcd.seed(islice(pods, _PROGRESS_PODS))
        count = min(first + _PROGRESS_PODS, len(names) * pods_per_node)
        say(f"{count} pods on {len(names)} nodes are in etcd")
    etcd.close()
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

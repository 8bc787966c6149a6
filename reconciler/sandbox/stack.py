"""The whole sandbox: AWS and a cluster as child processes, and the joiner between them.

The cluster is the simulated one, or a real control plane.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self

from reconciler.model.errors import ToolError, UsageError
from reconciler.sandbox.aws.events.queue import make_interruption_queue
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.process import AwsProcess
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.front.control_client import KubeControlClient
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.faults.script import FaultScript
from reconciler.sandbox.joiner import Joiner, JoinerSettings
from reconciler.sandbox.processes import start_child, stop_child

if TYPE_CHECKING:
    from reconciler.sandbox.control_plane.cluster import ControlPlaneCluster

_REGION = "us-west-2"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """How fast the sandbox's parts are."""

    delays: Delays = field(default_factory=Delays)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    joiner: JoinerSettings = field(default_factory=JoinerSettings)
    faults: FaultScript | None = None
    """Faults that are in force from the start."""
    region: str = _REGION
    """What AWS_REGION says."""
    programs: Path | None = None
    """Directory with the programs of a real control plane; None: the simulated cluster."""


class ClusterProcess:
    """`python -m reconciler.sandbox.cluster` as a child that ends with this process.

    Args:
        settings: Of the cluster.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.kubeconfig = Path()
        """The child's own file: it goes with the child, even when this process is killed."""

    def launch(self) -> None:
        """Start it, without waiting."""
        argv = [sys.executable, "-m", "reconciler.sandbox.cluster", "--parent", str(os.getpid())]
        for each in fields(ClusterSettings):
            value = getattr(self._settings, each.name)
            argv += ["--" + each.name.replace("_", "-"), str(value)]
        self._child = start_child(argv)

    def wait_until_ready(self) -> None:
        """Wait until it serves.

        Raises:
            ToolError: It ended instead.
        """
        assert self._child is not None
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            self.stop()
            raise ToolError("cluster process", "ended before it served")
        facts = json.loads(line)
        self.url, self.kubeconfig = str(facts["url"]), Path(facts["kubeconfig"])

    def stop(self) -> None:
        """End it and wait for it."""
        child, self._child = self._child, None
        if child is not None:
            stop_child(child)


class Sandbox:
    """AWS and Kubernetes on loopback, from `start` to `stop`; also a context manager.

    Start it from a thread that keeps running: the kernel ends children with the thread that
    created them.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self._aws = AwsProcess(delays=self.settings.delays)
        self._cluster: ClusterProcess | ControlPlaneCluster | None = None
        self._joiner: Joiner | None = None

    @property
    def aws_url(self) -> str:
        """Endpoint of every AWS service."""
        return self._aws.url

    @property
    def cluster_url(self) -> str:
        """Return the address of the API server."""
        return self._running().url

    @property
    def control(self) -> ControlClient:
        """Return a client of the emulated AWS's control API."""
        return self._aws.control

    @property
    def kube_control(self) -> KubeControlClient:
        """Return a client of the simulated cluster's control API.

        Raises:
            UsageError: The control plane is a real one, which has no control API.
        """
        if self.settings.programs is not None:
            what = "a real control plane takes no faults, and counts no calls"
            raise UsageError("sandbox", what, "leave the control plane simulated")
        return KubeControlClient(self.kubeconfig)

    def put_faults(self, script: FaultScript) -> None:
        """Put the faults of a script in force, in addition to those in force already."""
        self.control.put_faults(script.aws, script.seed)
        if script.kubernetes.requests:
            self.kube_control.put_faults(script.kubernetes, script.seed)

    @property
    def kubeconfig(self) -> Path:
        """Return the path of a kubeconfig that exists as long as the sandbox runs."""
        return self._running().kubeconfig

    def _running(self) -> "ClusterProcess | ControlPlaneCluster":
        if self._cluster is None:
            raise UsageError("sandbox", "is not started")
        return self._cluster

    def _made_cluster(self) -> "ClusterProcess | ControlPlaneCluster":
        settings = self.settings
        if settings.programs is None:
            return ClusterProcess(settings.cluster)
        from reconciler.sandbox.control_plane.cluster import (  # noqa: PLC0415 - its packages are optional
            ControlPlaneCluster,
        )

        return ControlPlaneCluster(settings.programs, settings.cluster)

    def environment(self) -> dict[str, str]:
        """Return the environment variables for programs in the sandbox; none is a secret."""
        return {
            "AWS_ENDPOINT_URL": self.aws_url,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_REGION": self.settings.region,
            "AWS_DEFAULT_REGION": self.settings.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "KUBECONFIG": str(self.kubeconfig),
        }

    def interruption_queue(self) -> str:
        """Create a queue to which EventBridge sends EC2's announcements; return its URL."""
        return make_interruption_queue(self.aws_url, self.settings.region)

    def start(self) -> Self:
        """Start both processes and the joiner; nothing is left running when one of them fails."""
        try:
            self._cluster = self._made_cluster()
            self._cluster.launch()
            self._aws.start()
            self._cluster.wait_until_ready()
            if self.settings.faults is not None:
                self.put_faults(self.settings.faults)
            self._joiner = Joiner(self._aws.url, self.kubeconfig, self.settings.joiner)
            self._joiner.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything: no thread, process, port or file stays."""
        if self._joiner is not None:
            self._joiner.stop()
            self._joiner = None
        if self._cluster is not None:
            self._cluster.stop()
            self._cluster = None
        self._aws.stop()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop, whatever happened."""
        self.stop()

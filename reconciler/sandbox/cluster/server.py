"""The whole simulated cluster in one process: API server, controllers, kubelets, scheduler."""

import secrets
import tempfile
from pathlib import Path
from typing import Self

from reconciler.sandbox.cluster.clock import Now, system_now
from reconciler.sandbox.cluster.controllers.budget import BudgetController
from reconciler.sandbox.cluster.controllers.daemonset import DaemonSetController
from reconciler.sandbox.cluster.controllers.deployment import DeploymentController
from reconciler.sandbox.cluster.controllers.garbage import GarbageCollector, NamespaceController
from reconciler.sandbox.cluster.controllers.job import JobController
from reconciler.sandbox.cluster.controllers.nodes import NodeLifecycle
from reconciler.sandbox.cluster.controllers.replicaset import ReplicaSetController
from reconciler.sandbox.cluster.controllers.statefulset import StatefulSetController
from reconciler.sandbox.cluster.events import Recorder
from reconciler.sandbox.cluster.front.certificate import make_certificate
from reconciler.sandbox.cluster.front.front import Front
from reconciler.sandbox.cluster.front.http import HttpServer
from reconciler.sandbox.cluster.front.kubeconfig import write_kubeconfig
from reconciler.sandbox.cluster.kubelets.nodes import NodeKubelet
from reconciler.sandbox.cluster.kubelets.pods import PodKubelet
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import (
    NAMESPACES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
)
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Store
from reconciler.sandbox.cluster.requests.routes import Router
from reconciler.sandbox.cluster.runtime import Controller, Runtime
from reconciler.sandbox.cluster.scheduling.scheduler import Scheduler
from reconciler.sandbox.cluster.scheduling.volumes import VolumeBinder
from reconciler.sandbox.cluster.settings import ClusterSettings

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class ClusterServer:
    """A cluster on loopback, from `start` to `stop`; also a context manager.

    Args:
        settings: Times and limits; fast by default.
        port: 0 chooses a free one.
        now: The clock behind timestamps.
    """

    def __init__(
        self,
        settings: ClusterSettings | None = None,
        *,
        port: int = 0,
        now: Now = system_now,
    ) -> None:
        self.settings = settings or ClusterSettings()
        self.token = secrets.token_urlsafe(24)
        self._store = Store(secrets.token_hex(8), log_length=self.settings.watch_log_length)
        self.api = Api(self._store, now)
        self._runtime = Runtime(self._store)
        self._add_controllers()
        router = Router(
            api=self.api,
            ready=lambda: self._runtime.running,
            bookmark_seconds=self.settings.bookmark_seconds,
            token=self.token,
        )
        self._certificate = make_certificate(now())
        context = self._certificate.server_context()
        self.front = Front(router.answer, now)
        self._http = HttpServer(port, context, self.token, self.front.answer)
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def _add_controllers(self) -> None:
        """Add the controllers, kubelets first, as the others wait for their reports."""
        api, settings = self.api, self.settings
        recorder = Recorder(api, settings.events_max)
        binder = VolumeBinder(api)
        controllers: tuple[Controller, ...] = (
            NodeKubelet(api, settings),
            NodeLifecycle(api, settings, recorder),
            PodKubelet(api, settings),
            NamespaceController(api),
            DeploymentController(api),
            ReplicaSetController(api),
            StatefulSetController(api),
            JobController(api),
            DaemonSetController(api),
            BudgetController(api),
            GarbageCollector(api),
            binder,
            Scheduler(api, recorder, binder),
        )
        for controller in controllers:
            self._runtime.add(controller)

    @property
    def url(self) -> str:
        """Return the address of the API server."""
        return self._http.url

    @property
    def kubeconfig(self) -> Path:
        """Return a kubeconfig file that exists as long as the server runs."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sandbox-cluster-")
            self.write_kubeconfig(Path(self._folder.name) / "kubeconfig")
        return Path(self._folder.name) / "kubeconfig"

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig for this cluster."""
        write_kubeconfig(path, self.url, self.token, self._certificate.certificate)

    def start(self) -> Self:
        """Create the standard namespaces and classes, then serve."""
        for name in _NAMESPACES:
            self.api.create(NAMESPACES, "", {"metadata": {"name": name}})
        for name, value in _PRIORITIES.items():
            self.api.create(PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value})
        self.api.create(STORAGE_CLASSES, "", default_storage_class())
        self._runtime.start()
        self._http.start()
        return self

    def stop(self) -> None:
        """End watches, close the port, join the threads, remove the kubeconfig."""
        self.front.stop()
        self._store.close()
        self._runtime.stop()
        self._http.stop()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop, whatever happened."""
        self.stop()


def default_storage_class() -> JsonObject:
    """Return EKS's usual class: volumes of the EBS CSI driver, bound when a pod is placed."""
    annotation = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "metadata": {"name": "gp3", "annotations": annotation},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "parameters": {"type": "gp3"},
    }

"""The real control plane as the sandbox's cluster."""

from pathlib import Path

from reconciler.machine.private_folder import PrivateFolder
from reconciler.sandbox.cluster.server import default_storage_class
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.sandbox.control_plane.provisioner import Provisioner


class ControlPlaneCluster:
    """A control plane with its storage, in a directory that is removed with it.

    Start it from a long-lived thread: the kernel ends children with the thread that started them.

    Args:
        programs: Directory with etcd, the three of Kubernetes and KWOK.
        settings: How fast KWOK is.
    """

    def __init__(self, programs: Path, settings: ClusterSettings) -> None:
        self._folder = PrivateFolder("control-plane")
        self._plane = ControlPlane(programs, self._folder.path, settings)
        self._provisioner: Provisioner | None = None

    @property
    def url(self) -> str:
        """Address of the API server."""
        return self._plane.url

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self._plane.kubeconfig

    def launch(self) -> None:
        """Do nothing: components need each other, so `wait_until_ready` starts them."""

    def wait_until_ready(self) -> None:
        """Start everything; return when pods can be created.

        Raises:
            ToolError: A component ended or never became ready.
        """
        self._plane.__enter__()
        self._provisioner = Provisioner(self._plane.kubeconfig)
        self._provisioner.create_class(default_storage_class())
        self._provisioner.start()

    def stop(self) -> None:
        """End everything; no process, thread or file remains."""
        provisioner, self._provisioner = self._provisioner, None
        if provisioner is not None:
            provisioner.stop_soon()
        self._plane.stop()
        if provisioner is not None:
            provisioner.join()
        self._folder.close()

"""The sandbox with the tests' control plane in the place of its own cluster."""

from pathlib import Path
from typing import Self

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.sandbox.control_plane.provisioner import Provisioner
from reconciler.sandbox.joiner import Joiner, JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings

_DELAYS = Delays(launch_seconds=0.5, terminate_seconds=0.5, modify_seconds=0.2)


class OnRealCluster(Sandbox):
    """AWS, joiner and provisioner over a control plane that others use too.

    Args:
        plane: It runs already, and goes on running afterwards.
    """

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(SandboxSettings(delays=_DELAYS))
        self._plane = plane
        self._provisioner = Provisioner(plane.kubeconfig)

    @property
    def kubeconfig(self) -> Path:
        """The control plane's."""
        return self._plane.kubeconfig

    def start(self) -> Self:
        """Start AWS and the joiner."""
        try:
            self._aws.start()
            joining = JoinerSettings(join_seconds=0.3, remove_seconds=0.3)
            self._joiner = Joiner(self._aws.url, self.kubeconfig, joining)
            self._joiner.start()
            self._provisioner.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything but the control plane."""
        self._provisioner.stop_soon()
        super().stop()

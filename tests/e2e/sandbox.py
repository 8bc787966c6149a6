"""The sandbox with the tests' control plane in the place of its own cluster."""

from pathlib import Path
from typing import Self

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.sandbox.control_plane.provisioner import Provisioner
from reconciler.sandbox.joiner import Joiner, JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings

_TERMINATE_SECONDS = 0.5
_MODIFY_SECONDS = 0.2
_REMOVE_SECONDS = 0.3


class OnRealCluster(Sandbox):
    """AWS, joiner and provisioner over a control plane that others use too.

    Args:
        plane: It runs already, and goes on running afterwards.
        launch_seconds: From the request to a running instance.
        join_seconds: From there to a node that is Ready.
    """

    def __init__(
        self, plane: ControlPlane, launch_seconds: float = 0.5, join_seconds: float = 0.3
    ) -> None:
        delays = Delays(
            launch_seconds=launch_seconds,
            terminate_seconds=_TERMINATE_SECONDS,
            modify_seconds=_MODIFY_SECONDS,
        )
        super().__init__(SandboxSettings(delays=delays))
        self._joining = JoinerSettings(join_seconds=join_seconds, remove_seconds=_REMOVE_SECONDS)
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
            self._joiner = Joiner(self._aws.url, self.kubeconfig, self._joining)
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

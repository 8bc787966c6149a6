"""The emulated AWS as a child process: for a world that is to outlive nothing of its starter."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from types import TracebackType
from typing import Self

from reconciler.model.errors import ToolError, UsageError
from reconciler.sandbox.aws.control_client import ControlClient
from reconciler.sandbox.aws.values import Delays

_STOP_SECONDS = 10.0


class AwsProcess:
    """`python -m reconciler.sandbox.aws` as a child.

    Start it from a thread that lives on: the kernel ends the child with the thread that made it.
    """

    def __init__(self, *, port: int = 0, delays: Delays | None = None) -> None:
        self._port = port
        self._delays = delays or Delays()
        self._child: subprocess.Popen[str] | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """The endpoint of every AWS service."""
        if self._url is None:
            raise UsageError("aws process", "is not started")
        return self._url

    @property
    def control(self) -> ControlClient:
        """Its control API."""
        return ControlClient(self.url)

    def start(self) -> str:
        """Start the child and wait until it serves; returns the URL.

        Raises:
            ToolError: It ended instead; its own words are passed on.
        """
        command = [sys.executable, "-m", "reconciler.sandbox.aws", "--port", str(self._port)]
        command += ["--parent-pid", str(os.getpid())]
        for field in fields(Delays):
            option = "--" + field.name.replace("_", "-")
            command += [option, str(getattr(self._delays, field.name))]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
        self._child = child
        line = "" if child.stdout is None else child.stdout.readline()
        if not line:
            self.stop()
            raise ToolError("aws process", f"ended with code {child.returncode} before it served")
        self._url = str(json.loads(line)["url"])
        return self._url

    def stop(self) -> None:
        """End the child and wait for it."""
        child, self._child, self._url = self._child, None, None
        if child is None:
            return
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

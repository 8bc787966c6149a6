"""The emulated AWS as a child process, which ends with its parent."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from typing import Self

from reconciler.model.errors import ToolError, UsageError
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.processes import start_child, stop_child


class AwsProcess:
    """`python -m reconciler.sandbox.aws` as a child.

    Start it from a long-lived thread: the kernel ends the child with the thread that started it.
    """

    def __init__(self, *, port: int = 0, delays: Delays | None = None) -> None:
        self._port = port
        self._delays = delays or Delays()
        self._child: subprocess.Popen[bytes] | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """Return the endpoint of every AWS service."""
        if self._url is None:
            raise UsageError("aws process", "is not started")
        return self._url

    @property
    def control(self) -> ControlClient:
        """Return a client of its control API."""
        return ControlClient(self.url)

    def start(self) -> str:
        """Start the child and wait until it serves; return the URL.

        Raises:
            ToolError: It ended instead; the error has its output.
        """
        command = [sys.executable, "-m", "reconciler.sandbox.aws", "--port", str(self._port)]
        command += ["--parent", str(os.getpid())]
        for field in fields(Delays):
            option = "--" + field.name.replace("_", "-")
            command += [option, str(getattr(self._delays, field.name))]
        child = self._child = start_child(command)
        line = b"" if child.stdout is None else child.stdout.readline()
        if not line:
            self.stop()
            raise ToolError("aws process", f"ended with code {child.returncode} before it served")
        self._url = str(json.loads(line)["url"])
        return self._url

    def stop(self) -> None:
        """End the child and wait for it."""
        child, self._child, self._url = self._child, None, None
        if child is not None:
            stop_child(child)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

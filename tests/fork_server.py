"""The process that imports the program once and forks for every process of it that tests start.

An import of the program, or of the sandbox's AWS, takes seconds of CPU time; a fork takes none.
"""

import multiprocessing
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import BinaryIO

_HEAVY = (
    "bootstrap.second_loop.loop",
    "bootstrap.pipeline.stages",
    "bootstrap.planning.planning",
    "bootstrap.snapshot",
    "bootstrap.capacity_loop.loop",
    "sandbox.cluster.server",
)
"""Modules of `reconciler` that are imported only by processes that need them."""


def prepare() -> None:
    """Say what it imports; it starts with the first process that is asked of it."""
    package = find_spec("reconciler.cli")
    assert package is not None
    commands = pkgutil.iter_modules(package.submodule_search_locations)
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        [
            "tests.botocore_models",
            *(f"reconciler.cli.{command.name}" for command in commands),
            *(f"reconciler.{name}" for name in _HEAVY),
            "tests.sandbox.aws.served_once",
        ]
    )


@cache
def ready() -> ForkServerContext:
    """Its context, when it has imported all: that is no part of the time of what comes first."""
    context = multiprocessing.get_context("forkserver")
    first = context.Process(target=int)
    first.start()
    first.join()
    first.close()
    return context


class Forked:
    """A process that the server forks: as much of a `Popen` as is used.

    Args:
        target: What it runs.
        args: For `target`.
    """

    def __init__(self, target: Callable[..., object], *args: object) -> None:
        self._process = ready().Process(target=target, args=args)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code; None as long as it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code of the process; None as long as it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("child", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkedChild(Forked):
    """Stands in for `reconciler.sandbox.processes.start_child`.

    Args:
        argv: `python -m MODULE ARGUMENTS`, of which `--parent ID` names the process to die with.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        module, *arguments = argv[2:]
        ours, its = multiprocessing.Pipe(duplex=False)
        with ours, its:
            super().__init__(_become, module, arguments, its)
            self.stdout: BinaryIO = os.fdopen(os.dup(ours.fileno()), "rb")


def _become(module: str, arguments: list[str], out: Connection) -> None:
    """Run the module as `python -m` does; in the forked process."""
    from moto.moto_api._internal import (  # noqa: PLC0415 - imported by the server already
        mock_random,
    )

    mock_random.seed()  # all accounts would have the same ids
    os.setsid()
    os.dup2(out.fileno(), sys.stdout.fileno())
    out.close()
    # Its parent is the fork server, which ends with the process of the tests.
    arguments[arguments.index("--parent") + 1] = str(os.getppid())
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)

"""Runs the terraform program through python-terraform's generic command call.

This is the only module that uses python-terraform 0.10.1. Its `destroy` passes a flag that
Terraform 1.x rejects, its `plan` and `apply` set options of their own, and its state reader
predates Terraform 0.12: none of them is used. What is used is `cmd`, which builds the argument list
and starts the process, without a shell; time limits and signals are ours.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from python_terraform import IsFlagged, Terraform

from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.errors import ToolError

FLAG = IsFlagged
"""Value of an option that is present or absent, such as `-json`."""
OUTLIVED_SECONDS = 86_400.0
"""Terraform may run on for this long after this process was killed, so its files are kept
meanwhile."""
_SLICE_SECONDS = 0.5
"""How often a wait for the end checks deadlines."""
_TO_FILES = 'out=$1; err=$2; shift 2; exec "$@" >"$out" 2>"$err"'
"""Terraform writes into files, not into our pipes: when this process is killed, Terraform finishes
its work, writes the state and releases the lock. Writing to a broken pipe would end it in the
middle, with fleets that are in no state."""
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a call ended."""

    status: int
    out: str
    error: str
    interrupted_by: str = ""
    """Name of the signal that asked us to stop meanwhile; empty when there was none."""
    timed_out: bool = False
    killed: bool = False
    """It did not stop in time, so the state lock may still be held."""


class _CommandLine(Terraform):  # type: ignore[misc] # python-terraform has no types
    """python-terraform's argument builder and starter, with our own environment."""

    def __init__(
        self,
        program: str,
        directory: str,
        environment: Mapping[str, str | None],
        output: "_Output",
    ) -> None:
        self._environment = environment
        self._output = output
        super().__init__(working_dir=directory, terraform_bin_path=program)

    def read_state_file(self, file_path: str | None = None) -> None:
        """Do nothing: `terraform state pull` reads the state."""

    def generate_cmd_string(self, cmd: str, *args: str, **kwargs: Any) -> list[str]:
        """Return the argument list, started through `env`, which replaces itself by Terraform.

        `cmd` passes its own option `synchronous` to the program, and gives the process a copy of
        our environment: both are corrected here. No secret is passed like this.
        """
        kwargs.pop("synchronous", None)
        unset = [
            part for name, v in self._environment.items() if v is None for part in ("-u", name)
        ]
        given = [f"{name}={v}" for name, v in self._environment.items() if v is not None]
        files = [str(self._output.out), str(self._output.error)]
        started = ["sh", "-c", _TO_FILES, "sh", *files, "env", *unset, *given]
        return [*started, *super().generate_cmd_string(cmd, *args, **kwargs)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """The files that receive the output of a call."""

    folder: Path

    @property
    def out(self) -> Path:
        """Return the file of standard output."""
        return self.folder / "out"

    @property
    def error(self) -> Path:
        """Return the file of standard error."""
        return self.folder / "error"

    def read(self, file: Path) -> str:
        """Return the content of one of them, empty when the call never began."""
        try:
            return file.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The terraform program in one directory."""

    path: str
    directory: str
    environment: Mapping[str, str | None]
    """Variables in addition to those of the process; None removes one."""
    stop_seconds: float

    def run(
        self, command: str, *arguments: str, timeout_seconds: float, **options: Any
    ) -> CommandResult:
        """Call `terraform COMMAND -OPTIONS ARGUMENTS` and wait for its end.

        Args:
            command: The sub-command; words are separated by blanks, as in `state pull`.
            arguments: What follows the options.
            timeout_seconds: After this long Terraform is asked to stop, as an operator would.
            options: By name, `_` for `-`; FLAG for an option without a value, None for absence.

        Raises:
            ToolError: The program cannot be started.
        """
        with (
            PrivateFolder("terraform-output", outlived_seconds=OUTLIVED_SECONDS) as folder,
            _Forwarding() as forwarding,
        ):
            output = _Output(folder=folder)
            line = _CommandLine(self.path, self.directory, self.environment, output)
            try:
                process, _, _ = line.cmd(command, *arguments, synchronous=False, **options)
            except OSError as error:
                why = f"cannot be started: {error.strerror}"
                raise ToolError(f"terraform {command}", why) from error
            forwarding.attach(process)
            with process:
                return _waited(process, output, forwarding, timeout_seconds, self.stop_seconds)


class _Forwarding:
    """While open, passes a request to stop on to Terraform, once.

    A second request would make Terraform stop at once and leave the state locked.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._previous: dict[signal.Signals, Any] = {}
        self.interrupted_by = ""
        self.asked_at: float | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _FORWARDED:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def attach(self, process: "subprocess.Popen[bytes]") -> None:
        """Set the process; an earlier request is passed on now."""
        self._process = process
        if self.interrupted_by and self.asked_at is None:
            self.ask_to_stop()

    def ask_to_stop(self) -> None:
        """Ask once; later calls do nothing."""
        if self.asked_at is None and self._process is not None:
            self.asked_at = time.monotonic()
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.interrupted_by = self.interrupted_by or signal.Signals(number).name
        if number == signal.SIGINT and _in_foreground():
            # The terminal sent it to Terraform as well.
            self.asked_at = self.asked_at or time.monotonic()
        else:
            self.ask_to_stop()


def _in_foreground() -> bool:
    """Return whether a terminal delivers Ctrl-C to us and to our children alike."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _waited(
    process: "subprocess.Popen[bytes]",
    output: _Output,
    forwarding: _Forwarding,
    timeout_seconds: float,
    stop_seconds: float,
) -> CommandResult:
    """Wait until the process ends; ask it to stop, then kill it, when it is late."""
    deadline = time.monotonic() + timeout_seconds
    timed_out = killed = False
    while True:
        try:
            process.wait(timeout=_SLICE_SECONDS)
            break
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now > deadline and forwarding.asked_at is None:
                timed_out = True
                forwarding.ask_to_stop()
            elif forwarding.asked_at is not None and now > forwarding.asked_at + stop_seconds:
                killed = True
                process.kill()
    return CommandResult(
        status=process.returncode,
        out=output.read(output.out),
        error=output.read(output.error),
        interrupted_by=forwarding.interrupted_by,
        timed_out=timed_out,
        killed=killed,
    )

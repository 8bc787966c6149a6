"""Runs the second loop as a child process and restarts it when it ends.

Neither its end nor its errors end or delay the capacity loop.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

import structlog

from reconciler.bootstrap.second_loop.channel import LINE_BYTES_MAX, Message, decode
from reconciler.bootstrap.second_loop.child import ACT, STAND_BY
from reconciler.bootstrap.second_loop.loop import GitopsOptions
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.errors import InputError
from reconciler.telemetry import events

JOIN_SECONDS: Final = 1.0
TELL_SECONDS: Final = 1.0
"""How often the process gets the permission to act or not."""
SILENT_SECONDS_MAX: Final = 1800.0
"""A process that sends nothing for this long is taken to hang, unless its polls are further
apart."""
SILENT_POLLS_MAX: Final = 3
"""How many polls may pass without a message from it."""
BACKOFF_SECONDS: Final = 1.0
BACKOFF_SECONDS_MAX: Final = 60.0
LONG_LIFE_SECONDS: Final = 300.0
"""When the process ran this long, its next end is not one of a series of failures."""
_LOG_LINE_BYTES_MAX: Final = 1024 * 1024
_NOT_FOR_IT: Final = ("AWS_", "KUBE", "RECONCILER_SLACK_HOOK", "RECONCILER_KUBECONFIG")
"""Prefixes of variables that the process does not need, above all credentials."""


@dataclass(slots=True)
class _Life:
    """One run of the process."""

    process: "subprocess.Popen[bytes]"
    last_message_seconds: float
    """Monotonic time of its last message."""
    fault: str = ""
    """The message that it must not send."""


class SecondLoop:
    """Runs the second loop in a child process, and restarts it when it ends.

    Args:
        options: Its options.
        cluster: The capacity loop's; empty: that of the only config.
        own_catalogue: Whether the capacity loop uses the catalogue that the config names.
        verbosity: As counted from `-v`.
        on_message: Called with each message, in a thread of this object.
        ended: Called with one line that says that the process ended and when it is restarted.
        may_act: Whether this replica is the one that acts.
    """

    def __init__(
        self,
        options: GitopsOptions,
        *,
        cluster: str,
        own_catalogue: bool,
        verbosity: int,
        on_message: Callable[[Message], None],
        ended: Callable[[str], None],
        may_act: Callable[[], bool],
    ) -> None:
        self._command = _command(options, cluster, verbosity, own_catalogue=own_catalogue)
        self._silent_seconds_max = silent_seconds_max(options.poll_seconds)
        self._on_message = on_message
        self._ended = ended
        self._may_act = may_act
        self._log = structlog.get_logger("gitops")
        self._stopped = threading.Event()
        # The child ends with the thread that started it (PR_SET_PDEATHSIG), so this thread stays.
        self._thread = threading.Thread(target=self._run, name="gitops", daemon=True)

    def start(self) -> None:
        """Start the process and what watches it."""
        self._thread.start()

    def stop(self) -> None:
        """End the process; a git command that hangs is not waited for."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(2 * JOIN_SECONDS)

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            reason = self._live()
            if self._stopped.is_set():
                return
            failures = 1 if time.monotonic() - began > LONG_LIFE_SECONDS else failures + 1
            pause = min(BACKOFF_SECONDS * 2.0 ** (failures - 1), BACKOFF_SECONDS_MAX)
            self._log.error(events.GITOPS_ENDED, reason=reason, again_in_seconds=pause)
            self._ended(f"failed: its process {reason}; it is started again in {pause:g} s")
            self._stopped.wait(pause)

    def _live(self) -> str:
        """Run the process until it ends or is stopped; return why it ended."""
        try:
            with PrivateFolder("gitops") as private:
                process = subprocess.Popen(  # noqa: S603 - this program, and no shell
                    [*self._command, str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=_environment(os.environ, str(private)),  # noqa: TID251 - handed on
                    start_new_session=True,  # Ctrl-C goes to this process, which passes it on
                )
                life = _Life(process, last_message_seconds=time.monotonic())
                with process:
                    self._accompany(life)
        except OSError as error:
            return f"could not be started: {error.strerror or type(error).__name__}"
        code = process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{how}: {life.fault}" if life.fault else how

    def _accompany(self, life: _Life) -> None:
        process = life.process
        readers = [
            threading.Thread(target=self._read, args=(life,), name="gitops-channel", daemon=True),
            threading.Thread(target=_relay, args=(process.stderr,), name="gitops-log", daemon=True),
        ]
        for reader in readers:
            reader.start()
        assert process.stdin is not None, "it is a pipe"
        os.set_blocking(process.stdin.fileno(), False)
        while process.poll() is None and not life.fault and not self._stopped.is_set():
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(process.stdin.fileno(), ACT if self._may_act() else STAND_BY)
            if time.monotonic() - life.last_message_seconds > self._silent_seconds_max:
                life.fault = f"it sent nothing for {self._silent_seconds_max:g} s"
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05 if self._stopped.is_set() else TELL_SECONDS)
        self._end(process)
        for reader in readers:
            reader.join(JOIN_SECONDS)

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None, "it is a pipe"
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(JOIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()

    def _read(self, life: _Life) -> None:
        assert life.process.stdout is not None, "it is a pipe"
        stream = life.process.stdout
        for line in iter(lambda: stream.readline(LINE_BYTES_MAX + 1), b""):
            if len(line) > LINE_BYTES_MAX:
                life.fault = f"it sent more than {LINE_BYTES_MAX} bytes in one line"
                return
            try:
                message = decode(line)
            except InputError as error:
                life.fault = str(error)
                return
            life.last_message_seconds = time.monotonic()
            self._on_message(message)


def silent_seconds_max(poll_seconds: float) -> float:
    """Return after how long a process that sends nothing is taken to hang.

    Args:
        poll_seconds: Between two polls of the repository.
    """
    return max(SILENT_SECONDS_MAX, SILENT_POLLS_MAX * poll_seconds)


def _command(
    options: GitopsOptions, cluster: str, verbosity: int, *, own_catalogue: bool
) -> list[str]:
    """Return the command line; it holds no secret and no shell reads it."""
    more = [f"--clone={options.clone}"] if options.clone is not None else []
    if options.cluster_name:
        more.append(f"--cluster-name={options.cluster_name}")
    if options.forge_api:
        more.append(f"--forge-api={options.forge_api}")
    if not own_catalogue:
        more.append("--supervised-catalogue")
    return [
        *(sys.executable, "-m", "reconciler", *["-v"] * verbosity, "gitops"),
        f"--repository={options.repository}",
        f"--branch={options.branch}",
        *(f"--config={path}" for path in options.configs),
        f"--out={options.output}",
        f"--mode={options.mode}",
        f"--interval={options.poll_seconds:g}",
        f"--forge={options.forge}",
        *more,
        f"--supervised-for={cluster}",
        "--supervised-by",
    ]


def _environment(variables: Mapping[str, str], private: str) -> dict[str, str]:
    """Return our environment without foreign credentials, with a private folder for files."""
    kept = {name: text for name, text in variables.items() if not name.startswith(_NOT_FOR_IT)}
    return {**kept, "TMPDIR": private}


def _relay(stream: IO[bytes] | None) -> None:
    """Copy the process's log to ours; a log file of ours may exceed its file size limit."""
    assert stream is not None, "it is a pipe"
    for line in iter(lambda: stream.readline(_LOG_LINE_BYTES_MAX), b""):
        sys.stderr.write(line.decode(errors="replace"))
        sys.stderr.flush()

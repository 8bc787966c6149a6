"""The second loop as a child process: its parent tells it when to act, and it reports back.

Only this process reads the repository. It has its own limits, so that nothing in the repository can
use up the capacity loop's memory, time or files.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from reconciler.adapters.system_clock import stop_on_signals
from reconciler.bootstrap.second_loop.channel import Message, Turn, encode
from reconciler.bootstrap.second_loop.confinement import confine
from reconciler.bootstrap.second_loop.log import GitopsLog
from reconciler.bootstrap.second_loop.loop import GitopsOptions, git_repository, gitops_loop
from reconciler.gitops.repository.status import ClusterStatus, GitopsReport
from reconciler.loops.second_loop.config_follower import ConfigFollower
from reconciler.model.errors import ReconcilerError
from reconciler.ports.repository import Commit
from reconciler.telemetry.logging import set_up_logging
from reconciler.telemetry.scrubbing import secrets_of
from reconciler.telemetry.threads import ends_of_threads_logged

ACT: Final = b"act\n"
STAND_BY: Final = b"stand by\n"
ACT_SECONDS: Final = 15.0
"""How long a permission to act lasts: a parent that hangs cannot withdraw it."""


@dataclass(slots=True)
class _Permission:
    """Whether the parent, which knows the leader, lets this process commit and push."""

    _until: float = field(default=0.0)

    def take_line(self, line: bytes) -> bool:
        """Take a line from the parent; return True when acting is newly allowed."""
        before = self.holds()
        self._until = time.monotonic() + ACT_SECONDS if line == ACT else 0.0
        return self.holds() and not before

    def holds(self) -> bool:
        """Return whether to act now."""
        return time.monotonic() < self._until


def run_supervised(
    options: GitopsOptions, cluster: str, parent: int, verbosity: int, *, own_catalogue: bool
) -> None:
    """Run the second loop for the parent until the parent closes our standard input.

    Args:
        options: The loop's options.
        cluster: The capacity loop's; empty: that of the only config.
        parent: Its process id.
        verbosity: As counted from `-v`.
        own_catalogue: Whether the parent uses the catalogue that the config names.

    Raises:
        ReconcilerError: The parent has ended already, or the options are invalid.
    """
    confine(parent)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr  # nothing else may write to the channel
    set_up_logging(verbosity, secrets_of(os.environ))  # noqa: TID251 - masked, not read
    permission, log = _Permission(), GitopsLog()

    def send(message: Message) -> None:
        out.write(encode(message))
        out.flush()

    def report(outcome: GitopsReport | ReconcilerError) -> None:
        log(outcome)
        send(turn_of(outcome))

    with ends_of_threads_logged(), git_repository(options) as repository:
        follower = ConfigFollower(
            repository, options.configs, cluster, send, own_catalogue=own_catalogue
        )

        def fetched(tip: Commit) -> None:
            follower.look(tip)
            if not permission.holds():
                send(Turn(text=f"at {tip.short}: stands by", progress=None))

        loop = gitops_loop(options, repository, fetched)
        thread = threading.Thread(
            target=_listen,
            args=(sys.stdin.buffer, permission, loop.wake, loop.stop),
            name="parent",
            daemon=True,
        )
        thread.start()
        with stop_on_signals(threading.Event(), [loop.stop]):
            loop.watch(report, permission.holds)


def _listen(
    stream: BinaryIO, permission: _Permission, wake: Callable[[], None], stop: Callable[[], None]
) -> None:
    for line in iter(lambda: stream.readline(64), b""):
        if permission.take_line(line):
            wake()
    stop()


def turn_of(outcome: GitopsReport | ReconcilerError) -> Turn:
    """Return the message about a turn of a replica that acts."""
    if isinstance(outcome, ReconcilerError):
        return Turn(text=f"failed: {outcome}", progress=None, failed=True)
    states = [_state(cluster) for cluster in outcome.clusters]
    text = f"at {outcome.tip.short}: {', '.join(states) or 'no configs'}"
    return Turn(text=text, progress=outcome.progress, failed=outcome.push_refused)


def _state(status: ClusterStatus) -> str:
    why = f": {status.detail}" if status.state == "refused" else ""
    return f"{status.target.config_path}: {status.state}{why}"

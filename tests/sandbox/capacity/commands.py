"""The program's commands inside the sandbox."""

import os
import subprocess

from reconciler.sandbox.stack import Sandbox
from tests import command
from tests.sandbox.capacity.world import DEADLINE_SECONDS


def reconciler(
    sandbox: Sandbox, *arguments: str, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end inside the sandbox."""
    inherited = os.environ  # noqa: TID251 - a child inherits ours
    done = command.reconciler(
        *arguments,
        env={**inherited, **sandbox.environment()},
        timeout_seconds=DEADLINE_SECONDS,
    )
    assert done.returncode == code, done.stderr
    return done

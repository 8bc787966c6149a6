"""The program's commands inside the sandbox."""

import os
import subprocess
import sys

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import DEADLINE_SECONDS


def reconciler(
    sandbox: Sandbox, *arguments: str, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end inside the sandbox."""
    inherited = os.environ  # noqa: TID251 - a child inherits ours
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", *arguments],
        env={**inherited, **sandbox.environment()},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done

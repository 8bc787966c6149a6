"""AWS providers that stay for many commands of Terraform.

Terraform starts the provider for each command, and for each `run` of `terraform test`: reading its
schema takes seconds of CPU time. A provider under a debugger is one that Terraform attaches to
instead, and leaves alone. It is the same program; only its start happens once.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from reconciler.sandbox import control_plane
from reconciler.sandbox.processes import stop_child

_DIES_WITH_US = Path(control_plane.__path__[0]) / "child.py"
_WHERE = "providers/*/hashicorp/aws/*/*/terraform-provider-aws*"
_ATTACH = "TF_REATTACH_PROVIDERS"
_KEPT = 2
"""One for what needs no account, one for the account of the tests that run."""
_running: dict[frozenset[tuple[str, str]], tuple[subprocess.Popen[bytes], str]] = {}


def attaching(data: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment with which Terraform attaches to a provider that stays.

    Args:
        data: The data directory of an initialised root (`.terraform`).
        settings: The provider's own environment, which says what account it talks to. A root with
            several `provider` blocks cannot attach: it would need one process for each.

    Returns:
        Nothing where no provider is installed.
    """
    binary = next(data.glob(_WHERE), None)
    if binary is None:
        return {}
    key = frozenset({**settings, "": str(binary.resolve())}.items())
    child, where = _running.pop(key, (None, ""))
    if child is None or child.poll() is not None:
        stop(_KEPT - 1)
        child, where = _started(binary.resolve(), settings)
    _running[key] = child, where
    return {_ATTACH: where}


def stop(kept: int = 0) -> None:
    """Stop all of them except the `kept` ones that were used last."""
    while len(_running) > kept:
        stop_child(_running.pop(next(iter(_running)))[0])


def _started(binary: Path, settings: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], str]:
    """The process, and what Terraform has to be told of it."""
    child = subprocess.Popen(
        [sys.executable, "-I", str(_DIES_WITH_US), str(os.getpid()), str(binary), "-debug"],
        env=dict(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    for line in child.stdout:
        told = re.search(rf"{_ATTACH}='(.*)'", line.decode())
        if told is not None:
            return child, told[1]
    raise AssertionError(f"{binary.name} -debug ended with {child.wait()}")

"""Programs that tests take from the PATH, or build once with Go and keep outside of the tree."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD_SECONDS_MAX = 900
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - programs need PATH and HOME


def go_tool(name: str, module: str) -> str:
    """Return the path of a program; the test is skipped, with the reason, when there is none.

    Args:
        name: Of the program.
        module: The Go package and its version, as `go install` takes it.
    """
    found = shutil.which(name)
    if found:
        return found
    cache = Path.home() / ".cache/fleet-reconciler/tools" / module.rpartition("@")[2]
    if not (cache / name).is_file():
        if shutil.which("go") is None:
            pytest.skip(f"{name} is not on the PATH, and there is no Go to build it with")
        settings = {"GOBIN": str(cache), "GOFLAGS": "", "CGO_ENABLED": "0"}
        built = subprocess.run(
            ["go", "install", "-trimpath", "-ldflags", "-s -w", module],
            env=_ENVIRONMENT | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BUILD_SECONDS_MAX,
            check=False,
        )
        if built.returncode:
            pytest.skip(f"{name} could not be built: {built.stdout.strip()[-200:]}")
    return str(cache / name)

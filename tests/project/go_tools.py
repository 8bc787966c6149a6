"""Programs that tests take from the PATH, or build once with Go and keep outside of the tree."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.full_proofs import rounds

BUILD_SECONDS_MAX = 900
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
PROMTOOL = "github.com/prometheus/prometheus/cmd/promtool@v0.305.0"
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - programs need PATH and HOME


def helm() -> str:
    """Return Helm, which installs the chart."""
    return go_tool("helm", HELM)


def promtool() -> str:
    """Return Prometheus' own test program; built when all rounds of the long proofs are to be run.

    It has hundreds of dependencies: the build takes minutes.
    """
    return go_tool("promtool", PROMTOOL, costly=True)


def go_tool(name: str, module: str, *, costly: bool = False) -> str:
    """Return the path of a program; the test is skipped, with the reason, when there is none.

    Args:
        name: Of the program.
        module: The Go package and its version, as `go install` takes it.
        costly: Whether it is built only with RECONCILER_FULL_PROOFS=1.
    """
    found = shutil.which(name)
    if found:
        return found
    cache = Path.home() / ".cache/fleet-reconciler/tools" / module.rpartition("@")[2]
    if not (cache / name).is_file():
        if shutil.which("go") is None:
            pytest.skip(f"{name} is not on the PATH, and there is no Go to build it with")
        if costly and rounds(0, 1) == 0:
            pytest.skip(
                f"{name} is not on the PATH; RECONCILER_FULL_PROOFS=1 builds it, in minutes"
            )
        _build(name, module, cache)
    return str(cache / name)


def _build(name: str, module: str, cache: Path) -> None:
    """In a module of its own: one with `replace` lines cannot be installed."""
    package, _, _ = module.partition("@")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "go.mod").write_text("module tools\n\ngo 1.24\n")
        for command in (
            ["go", "get", module],
            ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(cache / name), package],
        ):
            done = subprocess.run(
                command,
                cwd=folder,
                env=_ENVIRONMENT | {"GOFLAGS": "", "CGO_ENABLED": "0"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=BUILD_SECONDS_MAX,
                check=False,
            )
            if done.returncode:
                pytest.skip(f"{name} could not be built: {done.stdout.strip()[-200:]}")

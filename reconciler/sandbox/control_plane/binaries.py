"""The control plane's programs: existing ones, cached ones, or built from the Go module here.

For every function `environment` is the process's, or a test's own.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from reconciler.model.errors import ToolError

MODULE = Path(__file__).parent / "programs"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
READY_VARIABLE = "RECONCILER_E2E_BIN"
CACHE_VARIABLE = "RECONCILER_E2E_CACHE"
_PROGRAM = "control-plane"
_BUILD_SECONDS_MAX = 40 * 60
_GO = re.compile(r"^go (\d+\.\d+)", re.MULTILINE)
_KUBERNETES = re.compile(r"k8s\.io/kubernetes v((\d+)\.(\d+)\.\S+)")


def provide_binaries(environment: Mapping[str, str], say: Callable[[str], None]) -> Path:
    """Return the directory of programs: an existing one, else a new one.

    Args:
        environment: The process's.
        say: Called before a build, which takes minutes.

    Raises:
        ToolError: There are none and none can be built; it names what is missing.
    """
    if sys.platform != "linux":
        raise ToolError("control plane", "is only run on Linux", "take the simulated cluster")
    found = find_binaries(environment)
    if found is None and not _go_is_missing(environment):
        say("building etcd, Kubernetes and KWOK with Go: 5 to 15 minutes, the first time only")
    return found or build_binaries(environment)


def find_binaries(environment: Mapping[str, str]) -> Path | None:
    """Return the directory of existing programs, or None.

    Raises:
        ToolError: RECONCILER_E2E_BIN names a directory that lacks some.
    """
    named = environment.get(READY_VARIABLE)
    if named:
        missing = [name for name in COMPONENTS if not os.access(Path(named, name), os.X_OK)]
        if missing:
            raise ToolError(
                f"{READY_VARIABLE}={named}",
                f"lacks {', '.join(missing)}",
                f"put all of {', '.join(COMPONENTS)} there, or unset it and install Go",
            )
        return Path(named).resolve()
    directory = _cache(environment) / _key()
    return directory if (directory / COMPONENTS[-1]).exists() else None


def build_binaries(environment: Mapping[str, str]) -> Path:
    """Build them into the cache, once for any number of processes that ask at the same time.

    Costs 600 MB of modules and 5 to 10 minutes on two cores when Go's own cache is cold.

    Raises:
        ToolError: Go is missing, or the build failed.
    """
    if _go_is_missing(environment):
        raise ToolError(
            "go",
            "is not on the PATH; the control plane's programs are built with it",
            f"install Go {_go_version()} or newer, or set {READY_VARIABLE} to a directory with"
            f" {', '.join(COMPONENTS)}",
        )
    cache = _cache(environment)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find_binaries(environment)
        return found or _build(cache / _key(), environment)


def _go_is_missing(environment: Mapping[str, str]) -> bool:
    return shutil.which("go", path=environment.get("PATH", "")) is None


def _build(directory: Path, environment: Mapping[str, str]) -> Path:
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        argv = ["go", "build", "-mod=readonly", "-trimpath", "-gcflags=all=-dwarf=false"]
        argv += [f"-ldflags={_link_flags()}", "-o", str(made / _PROGRAM), "."]
        _run(argv, {**environment, "CGO_ENABLED": "0", "GOGC": "400"})
        for name in COMPONENTS:
            (made / name).symlink_to(_PROGRAM)
        shutil.rmtree(directory, ignore_errors=True)
        made.rename(directory)
    return directory


def _run(argv: list[str], environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - go with arguments built here
            argv,
            cwd=MODULE,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        minutes = _BUILD_SECONDS_MAX // 60
        raise ToolError(" ".join(argv[:2]), f"took over {minutes} minutes") from None
    if done.returncode:
        errors = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise ToolError(
            " ".join(argv[:2]),
            f"failed for {MODULE.name}/go.mod: {errors}",
            f"modules come from the module proxy that Go is set to; or set {READY_VARIABLE}",
        )


def _go_version() -> str:
    """Return the major and minor version that the module requires."""
    match = _GO.search((MODULE / "go.mod").read_text())
    return match.group(1) if match else ""


def _link_flags() -> str:
    """Return the link flags: without a version the API server says v0.0.0, and clients fail."""
    match = _KUBERNETES.search((MODULE / "go.mod").read_text())
    if match is None:
        raise ToolError(f"{MODULE.name}/go.mod", "names no k8s.io/kubernetes")
    version, major, minor = match.groups()
    named = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in named.items()]
    return " ".join(["-s", "-w", *flags])


def _key() -> str:
    """Return a key that differs for other sources or another machine."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / name).read_bytes())
    digest.update(f"{platform.system()} {platform.machine()}".encode())
    return digest.hexdigest()[:16]


def _cache(environment: Mapping[str, str]) -> Path:
    named = environment.get(CACHE_VARIABLE)
    if named:
        return Path(named).resolve()
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "."), ".cache"))
    return Path(base, "fleet-reconciler", "e2e").resolve()

"""The control plane's programs: ready ones, cached ones, or built from the Go module here."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

MODULE = Path(__file__).parent / "control_plane"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
READY_VARIABLE = "RECONCILER_E2E_BIN"
CACHE_VARIABLE = "RECONCILER_E2E_CACHE"
_PROGRAM = "control-plane"
_BUILD_SECONDS_MAX = 40 * 60
_KUBERNETES = re.compile(r"k8s\.io/kubernetes v((\d+)\.(\d+)\.\S+)")


class NoControlPlaneError(Exception):
    """There are no programs and none can be built; the text says what is missing."""


def find_binaries(environment: Mapping[str, str]) -> Path | None:
    """The directory of programs that are there already, or None.

    Raises:
        NoControlPlaneError: RECONCILER_E2E_BIN names a directory that lacks some.
    """
    named = environment.get(READY_VARIABLE)
    if named:
        missing = [name for name in COMPONENTS if not os.access(Path(named, name), os.X_OK)]
        if missing:
            raise NoControlPlaneError(
                f"{READY_VARIABLE}={named} lacks {', '.join(missing)} (put all of"
                f" {', '.join(COMPONENTS)} there, or unset it and install Go)"
            )
        return Path(named).resolve()
    if _go_is_missing(environment):
        return None
    directory = _cache(environment) / _key(environment)
    return directory if (directory / COMPONENTS[-1]).exists() else None


def build_binaries(environment: Mapping[str, str]) -> Path:
    """Build them into the cache, once for any number of processes that ask at a time.

    Costs 600 MB of modules and 5 to 10 minutes on two cores when Go's own cache is cold.

    Raises:
        NoControlPlaneError: Go is missing, or the build failed.
    """
    if _go_is_missing(environment):
        raise NoControlPlaneError(
            "the go program is missing (install Go, or set"
            f" {READY_VARIABLE} to a directory with {', '.join(COMPONENTS)})"
        )
    cache = _cache(environment)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find_binaries(environment)
        return found or _build(cache / _key(environment), environment)


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


def _run(argv: list[str], environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            argv,
            cwd=MODULE,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise NoControlPlaneError(
            f"{' '.join(argv[:2])} took over {_BUILD_SECONDS_MAX // 60} minutes"
        ) from None
    if done.returncode:
        said = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise NoControlPlaneError(
            f"{' '.join(argv[:2])} failed in tests/e2e/control_plane: {said} (modules come from"
            f" the module proxy that Go is set to; or set {READY_VARIABLE})"
        )
    return done.stdout


def _link_flags() -> str:
    """Without a version the API server says v0.0.0, and clients misbehave."""
    match = _KUBERNETES.search((MODULE / "go.mod").read_text())
    if match is None:
        raise NoControlPlaneError("tests/e2e/control_plane/go.mod names no k8s.io/kubernetes")
    version, major, minor = match.groups()
    named = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in named.items()]
    return " ".join(["-s", "-w", *flags])


def _key(environment: Mapping[str, str]) -> str:
    """Another key for other sources or another Go."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / name).read_bytes())
    digest.update(_run(["go", "env", "GOVERSION", "GOOS", "GOARCH"], environment).encode())
    return digest.hexdigest()[:16]


def _cache(environment: Mapping[str, str]) -> Path:
    named = environment.get(CACHE_VARIABLE)
    if named:
        return Path(named).resolve()
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "."), ".cache"))
    return Path(base, "fleet-reconciler", "e2e").resolve()

"""A real Kubernetes control plane on loopback, with KWOK as its kubelets.

`with ControlPlane(programs, directory) as plane: plane.kubeconfig`. RBAC is on; KWOK acts as the
kubelet of every Node object (stages.yaml). All ports are free ones of 127.0.0.1, all files are in
the directory, and no process outlives this one.
"""

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from reconciler.model.errors import ToolError
from reconciler.sandbox.cluster.clock import system_now
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.control_plane.certificates import Authority
from reconciler.sandbox.control_plane.flags import (
    api_server_flags,
    controller_flags,
    etcd_flags,
    kwok_flags,
)
from reconciler.sandbox.control_plane.stages import kwok_configuration

_LAUNCHER = Path(__file__).parent / "child.py"
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.05
_STOP_SECONDS = 10.0
_RENEWALS = 4
"""How often a lease is renewed within its duration."""
_PORT_TAKEN = "address already in use"
_ATTEMPTS = 3


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK.

    Args:
        programs: Directory with the five.
        directory: Empty or missing; logs, keys and etcd's data go there.
        settings: How fast KWOK is; what only the simulated cluster has is left aside.
        seed: Called with etcd's address before the API server starts, to put objects there.
    """

    def __init__(
        self,
        programs: Path,
        directory: Path,
        settings: ClusterSettings | None = None,
        *,
        seed: Callable[[str], None] | None = None,
    ) -> None:
        self._programs = programs
        self._root = directory
        self._directory = directory
        self._settings = settings or ClusterSettings(job_seconds=3.0)
        self._seed = seed
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._launches: dict[str, list[str]] = {}
        self.url = ""
        self.etcd_url = ""

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self._user("admin")

    @property
    def processes(self) -> Mapping[str, subprocess.Popen[bytes]]:
        """Return the running components by name."""
        return self._processes

    def __enter__(self) -> Self:
        """Start; returns when pods can be created."""
        for attempt in range(1, _ATTEMPTS + 1):
            self._directory = self._root / f"attempt-{attempt}"
            try:
                self._start()
            except ToolError as error:
                self.stop()
                if attempt == _ATTEMPTS or _PORT_TAKEN not in str(error):
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                return self
        raise AssertionError("unreachable")

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def stop(self) -> None:
        """End every component, etcd last; return when all have ended."""
        for name in reversed(list(self._processes)):
            self.stop_process(name)
        shutil.rmtree(self._directory / "etcd", ignore_errors=True)  # logs are kept for inspection

    def stop_process(self, name: str) -> None:
        """End one component; return when it has ended."""
        child = self._processes.pop(name)
        child.terminate()
        try:
            child.wait(_STOP_SECONDS if name == "etcd" else 2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def start_process(self, name: str) -> None:
        """Start a component again as it was first started; return at once."""
        self._launch(name)

    def start_scheduler(self, name: str, configuration: Mapping[str, Any]) -> None:
        """Start one more kube-scheduler, with KubeSchedulerConfiguration keys of its own."""
        file = self._directory / f"{name}.yaml"
        connection = {
            "kubeconfig": str(self._user("kube-scheduler")),
            "qps": 1000,
            "burst": 2000,
        }
        body = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": connection,
            **configuration,
        }
        file.write_text(json.dumps(body))
        self._spawn(name, f"--config={file}", "--secure-port=0", program="kube-scheduler")

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET as the administrator."""
        keys = self._directory / "pki"
        context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        context.load_cert_chain(keys / "admin.crt", keys / "admin.key")
        return _get(self.url + path, context)

    # ---- start ----------------------------------------------------------------------------

    def _start(self) -> None:
        (self._directory / "log").mkdir(parents=True)
        etcd_port, peer_port, api_port = _free_ports()
        self.url = f"https://127.0.0.1:{api_port}"
        self._write_keys()
        self._start_etcd(f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer_port}")
        keys = self._directory / "pki"
        self._spawn("kube-apiserver", *api_server_flags(keys, self.etcd_url, api_port))
        self._until("kube-apiserver", lambda: self.get("/readyz")[0] == 200)
        self._start_clients(round(self._settings.lease_seconds * _RENEWALS))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._until("the default service account", lambda: self.get(account)[0] == 200)

    def _start_etcd(self, url: str, peer: str) -> None:
        self.etcd_url = url
        self._spawn("etcd", *etcd_flags(self._directory / "etcd", url, peer))
        self._until("etcd", lambda: _get(f"{url}/readyz", None)[0] == 200)
        if self._seed is not None:
            self._seed(url)

    def _start_clients(self, lease_seconds: int) -> None:
        """Start the components that only talk to the API server."""
        keys = self._directory / "pki"
        manager = self._user("kube-controller-manager")
        self._spawn("kube-controller-manager", *controller_flags(keys, manager, lease_seconds))
        self.start_scheduler("kube-scheduler", {})
        stages = self._directory / "kwok.yaml"
        stages.write_text(kwok_configuration(self._settings))
        self._spawn("kwok", *kwok_flags(self._user("kwok"), stages, lease_seconds))

    def _write_keys(self) -> None:
        keys = self._directory / "pki"
        keys.mkdir()
        authority = Authority(keys, system_now())
        authority.server("apiserver")
        authority.signing_key("sa")
        authority.client("admin", "e2e-admin", "system:masters")
        authority.client("kwok", "kwok", "system:masters")
        for name in ("kube-controller-manager", "kube-scheduler"):
            authority.client(name, f"system:{name}")

    def _user(self, name: str) -> Path:
        """Return the kubeconfig of a user with a client certificate."""
        keys = self._directory / "pki"
        file = self._directory / f"{name}.kubeconfig"
        if not file.exists():
            cluster = {"server": self.url, "certificate-authority-data": _encoded(keys / "ca.crt")}
            user = {
                "client-certificate-data": _encoded(keys / f"{name}.crt"),
                "client-key-data": _encoded(keys / f"{name}.key"),
            }
            body = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "e2e",
                "clusters": [{"name": "e2e", "cluster": cluster}],
                "users": [{"name": name, "user": user}],
                "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
            }
            file.touch(mode=0o600)
            file.write_text(json.dumps(body))
        return file

    # ---- processes ------------------------------------------------------------------------

    def _spawn(self, name: str, *flags: str, program: str = "") -> None:
        file = self._programs / (program or name)
        launcher = [sys.executable, "-I", str(_LAUNCHER), str(os.getpid())]
        self._launches[name] = [*launcher, str(file), *flags]
        self._launch(name)

    def _launch(self, name: str) -> None:
        environment = {"HOME": str(self._directory), "PATH": os.defpath}
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - argv is built here
                self._launches[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=environment,
                start_new_session=True,  # Ctrl-C comes to this process, which ends them in order
            )

    def _log(self, name: str) -> Path:
        return self._directory / "log" / f"{name}.log"

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _START_SECONDS
        while True:
            for name, child in self._processes.items():
                if child.poll() is not None:
                    tail = self._log(name).read_text(errors="replace")[-2000:]
                    raise ToolError(name, f"ended with code {child.returncode}: {tail}")
            with suppress(OSError):
                if holds():
                    return
            if time.monotonic() > end:
                raise ToolError(what, f"was not ready within {_START_SECONDS:.0f} s")
            threading.Event().wait(_LOOK_SECONDS)


def _free_ports() -> list[int]:
    """Return three ports that were free a moment ago; a start that loses the race is retried."""
    sockets = [socket.socket() for _ in range(3)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _get(url: str, context: ssl.SSLContext | None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, context=context, timeout=5) as answer:  # noqa: S310 - loopback
            return int(answer.status), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()

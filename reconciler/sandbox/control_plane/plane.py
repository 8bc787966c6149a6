"""A real Kubernetes control plane on loopback, with KWOK as its kubelets.

`with ControlPlane(programs, directory) as plane: plane.kubeconfig`. RBAC is on; every Node
object is played by KWOK (stages.yaml). All ports are free ones of 127.0.0.1, all files are in the
directory, and no process outlives this one.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reconciler.model.errors import ToolError
from reconciler.sandbox.cluster.clock import system_now
from reconciler.sandbox.control_plane.certificates import Authority

_LAUNCHER = Path(__file__).parent / "child.py"
_STAGES = Path(__file__).parent / "stages.yaml"
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.05
_STOP_SECONDS = 10.0
_LEASE_SECONDS = 40
_PORT_TAKEN = "address already in use"
_ATTEMPTS = 3


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK.

    Args:
        programs: Directory with the five.
        directory: Empty or missing; logs, keys and etcd's data go there.
    """

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs = programs
        self._root = directory
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.url = ""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._user("admin")

    @property
    def processes(self) -> Mapping[str, subprocess.Popen[bytes]]:
        """The running components by name."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Stop."""
        self.stop()

    def stop(self) -> None:
        """End every component, etcd last; returns when all are gone."""
        for name in reversed(list(self._processes)):
            self.stop_process(name)
        shutil.rmtree(self._directory / "etcd", ignore_errors=True)  # logs stay for a look

    def stop_process(self, name: str) -> None:
        """End one component; returns when it is gone."""
        child = self._processes.pop(name)
        child.terminate()
        try:
            child.wait(_STOP_SECONDS if name == "etcd" else 2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def start_scheduler(self, name: str, configuration: Mapping[str, Any]) -> None:
        """One more kube-scheduler, with keys of KubeSchedulerConfiguration of its own."""
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
        """Status and body of a GET as the administrator."""
        keys = self._directory / "pki"
        context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        context.load_cert_chain(keys / "admin.crt", keys / "admin.key")
        return _get(self.url + path, context)

    # ---- start ----------------------------------------------------------------------------

    def _start(self) -> None:
        (self._directory / "log").mkdir(parents=True)
        etcd_port, peer_port, api_port = _free_ports(3)
        self.url = f"https://127.0.0.1:{api_port}"
        self._write_keys()
        etcd = f"http://127.0.0.1:{etcd_port}"
        peer = f"http://127.0.0.1:{peer_port}"
        self._spawn("etcd", *_etcd_flags(self._directory, etcd, peer))
        self._until("etcd", lambda: _get(f"{etcd}/readyz", None)[0] == 200)
        self._spawn("kube-apiserver", *_api_server_flags(self._directory / "pki", etcd, api_port))
        self._until("kube-apiserver", lambda: self.get("/readyz")[0] == 200)
        self._spawn("kube-controller-manager", *self._controller_flags())
        self.start_scheduler("kube-scheduler", {})
        self._spawn("kwok", *self._kwok_flags())
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._until("the default service account", lambda: self.get(account)[0] == 200)

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
        """The kubeconfig of a user with a client certificate."""
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

    def _controller_flags(self) -> list[str]:
        keys = self._directory / "pki"
        return [
            f"--kubeconfig={self._user('kube-controller-manager')}",
            "--secure-port=0",
            "--leader-elect=false",
            f"--service-account-private-key-file={keys}/sa.key",
            f"--root-ca-file={keys}/ca.crt",
            "--use-service-account-credentials=true",
            f"--cluster-signing-cert-file={keys}/ca.crt",
            f"--cluster-signing-key-file={keys}/ca.key",
            f"--node-monitor-grace-period={_LEASE_SECONDS + 10}s",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]

    def _kwok_flags(self) -> list[str]:
        """KWOK reads a file in HOME, refuses to start without stages or with these at 0."""
        options = {
            "podPlayStageParallelism": 4,
            "nodePlayStageParallelism": 4,
            "nodeLeaseParallelism": 4,
            "podsOnNodeSyncParallelism": 4,
            "enablePodsOnNodeSyncStreamWatch": False,
        }
        own = {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            "options": options,
        }
        file = self._directory / "kwok.yaml"
        file.write_text(f"{_STAGES.read_text()}\n---\n{json.dumps(own)}\n")
        return [
            f"--kubeconfig={self._user('kwok')}",
            f"--config={file}",
            "--cidr=10.244.0.0/16",
            "--manage-all-nodes=true",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        ]

    # ---- processes ------------------------------------------------------------------------

    def _spawn(self, name: str, *flags: str, program: str = "") -> None:
        file = self._programs / (program or name)
        launch = [sys.executable, "-I", str(_LAUNCHER), str(os.getpid()), str(file)]
        environment = {"HOME": str(self._directory), "PATH": os.defpath}
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - argv is built here
                [*launch, *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=environment,
                start_new_session=True,  # Ctrl-C is ours, which ends them in order
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


def _etcd_flags(directory: Path, url: str, peer: str) -> Sequence[str]:
    return (
        "--name=e2e",
        f"--data-dir={directory}/etcd",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=e2e={peer}",
        "--unsafe-no-fsync",  # nobody needs this data after a crash
        "--log-level=warn",
    )


def _api_server_flags(keys: Path, etcd: str, port: int) -> Sequence[str]:
    return (
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # a loopback address may be no endpoint
        f"--client-ca-file={keys}/ca.crt",
        f"--tls-cert-file={keys}/apiserver.crt",
        f"--tls-private-key-file={keys}/apiserver.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={keys}/sa.pub",
        f"--service-account-signing-key-file={keys}/sa.key",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--profiling=false",
        "--max-requests-inflight=1000",
        "--max-mutating-requests-inflight=500",
    )


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; a start that loses the race is tried again."""
    sockets = [socket.socket() for _ in range(count)]
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

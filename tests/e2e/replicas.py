"""Two replicas of the reconciler, each on wires of its own, and everything that each changed."""

import base64
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

from reconciler.adapters.kubernetes import Transport
from tests.e2e.audited import AuditedPlane
from tests.e2e.installed import ACCOUNT, token_kubeconfig
from tests.e2e.sandbox import OnRealCluster
from tests.e2e.wire import Wire
from tests.sandbox.capacity.world import Program
from tests.waiting import until

EC2_CHANGES = ("Action=ModifyFleet", "Action=TerminateInstances")
NOT_ACTING = frozenset({"leases", "events"})
"""What a replica may write without acting on anything; only leaders write Events."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Change:
    """One request that changes something, as it arrived at EC2 or the API server."""

    at: datetime
    replica: str
    what: str


class Replica:
    """One process with its own token, its own wire to the API server and to EC2.

    Args:
        name: For messages.
        plane: The control plane.
        api: Requests to it as its administrator.
        sandbox: EC2.
        folder: With `sectors.yaml`.
        pod: The uid of the pod that it runs in; empty: it runs in none.
    """

    def __init__(
        self,
        name: str,
        plane: AuditedPlane,
        api: Transport,
        sandbox: OnRealCluster,
        folder: Path,
        pod: str = "",
    ) -> None:
        self.name = name
        own = folder / name
        own.mkdir()
        config = own / "sectors.yaml"
        config.write_text((folder / "sectors.yaml").read_text())
        self.kubernetes = Wire(_port(plane.url))
        self.ec2 = Wire(_port(sandbox.aws_url), EC2_CHANGES)
        kubeconfig = token_kubeconfig(plane, api, own)
        body = json.loads(kubeconfig.read_text())
        self.credential = _credential(body["users"][0]["user"]["token"])
        body["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.kubernetes.port}"
        kubeconfig.write_text(json.dumps(body))
        self.program = Program(
            sandbox,
            config,
            *("--kubeconfig", str(kubeconfig)),
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.ec2.port}",
            **(_environment_of_pod(pod, folder) if pod else {}),
        )

    @property
    def role(self) -> str:
        """`leader`, `standby`, or why neither."""
        return self.program.get("/readyz")[1].strip()

    def until_role(self, role: str) -> float:
        """Wait for it; how long it took."""
        began = time.monotonic()
        until(f"{self.name} is {role}", lambda: self.role == role, look_seconds=0.05)
        return time.monotonic() - began

    def pause(self) -> None:
        """Stop the process in whatever it does."""
        self.program.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue it."""
        self.program.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, however it is."""
        if self.program.process.poll() is None:
            self.go_on()
        self.program.__exit__()
        self.kubernetes.__exit__(None, None, None)
        self.ec2.__exit__(None, None, None)


class Replicas:
    """All that were started in one test; closed with it."""

    def __init__(
        self, plane: AuditedPlane, api: Transport, sandbox: OnRealCluster, folder: Path
    ) -> None:
        self._parts = (plane, api, sandbox, folder)
        self._plane = plane
        self._all: list[Replica] = []

    def start(self, role: str, pod: str = "") -> Replica:
        """Start one more and wait until it is what it shall be."""
        made = Replica(f"replica-{len(self._all)}", *self._parts, pod)
        self._all.append(made)
        made.program.until_ready()
        made.until_role(role)
        return made

    def changes(self) -> list[Change]:
        """Everything that any of them changed, in order of arrival."""
        by_credential = {replica.credential: replica.name for replica in self._all}
        found = [
            Change(at=heard.at, replica=replica.name, what=heard.word)
            for replica in self._all
            for heard in replica.ec2.heard
        ]
        for entry in self._plane.entries(ACCOUNT):
            name = by_credential.get(entry.credential)
            asked = entry.asked
            if name and asked.changing and asked.resource not in NOT_ACTING:
                what = f"{asked.verb} {asked.resource} {asked.name}"
                found.append(Change(at=entry.at, replica=name, what=what))
        return sorted(found)

    def turns(self) -> list[str]:
        """Who acted, one after the other: two that act at once show as A, B, A."""
        return [name for name, _ in groupby(change.replica for change in self.changes())]

    def acted_since(self, replica: Replica, moment: datetime) -> bool:
        """Whether a replica changed anything after a moment."""
        return any(c.replica == replica.name and c.at > moment for c in self.changes())

    def close(self) -> None:
        """End all."""
        for replica in self._all:
            replica.close()

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._all)


def _environment_of_pod(uid: str, folder: Path) -> dict[str, str]:
    """What the manifest's Deployment gives a container, and a folder that outlives it."""
    temporary = folder / f"tmp-{uid}"
    temporary.mkdir(exist_ok=True)
    return {"POD_NAME": f"fleet-reconciler-{uid}", "POD_UID": uid, "TMPDIR": str(temporary)}


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def _credential(token: str) -> str:
    """As the audit log names a token."""
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"

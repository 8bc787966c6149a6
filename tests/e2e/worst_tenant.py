"""A tenant with ClusterRole `edit` in a namespace of its own, who writes whatever hurts most.

Everything here goes through the API server with the tenant's own token; what it refuses (quotas,
validation, RBAC) is counted and told, never an error of the script. He is a process of his own:
`python -m tests.e2e.worst_tenant KUBECONFIG SECTOR attacks|busy` until SIGTERM, after which he
writes his counts to stdout.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Self

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.model.errors import PortError
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.benchmarks import hostile
from tests.benchmarks.hostile_pods import pod
from tests.waiting import until

NAMESPACE = "worst"
LARGEST_BODY = 1_400_000
"""The API server takes 1.5 MB in one request."""
PODS_MAX = 600
"""Alive at once: more would only show how slow the API server is on the same two cores."""
LEASE_SECONDS = 2_147_483_647
STOP_SECONDS = 60
"""For the last answer to him."""

LONG_NAME = "eyJ-" * 225_000
KINDS = 200
"""Different ones of each kind."""

Json = dict[str, Any]
Attack = Callable[["WorstTenant", int], None]


def account_of_edit(plane: ControlPlane, api: Transport, folder: Path) -> Path:
    """A kubeconfig of a ServiceAccount that ClusterRole `edit` is bound to in its namespace."""
    api.expect("POST", "/api/v1/namespaces", body={"metadata": {"name": NAMESPACE}})
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    api.expect("POST", accounts, body={"metadata": {"name": "tenant"}})
    binding = {
        "metadata": {"name": "edit"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "edit",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": NAMESPACE}],
    }
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
    api.expect("POST", bindings, body=binding)
    until("pods can be made", lambda: api.request("GET", f"{accounts}/default").status == 200)
    request = {"spec": {"expirationSeconds": 7200}}
    token = api.expect("POST", f"{accounts}/tenant/token", body=request).json()["status"]["token"]
    body = json.loads(plane.kubeconfig.read_text())
    body["users"] = [{"name": "tenant", "user": {"token": token}}]
    body["contexts"][0]["context"]["user"] = "tenant"
    file = folder / "tenant.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(json.dumps(body))
    return file


def yield_cores(leader: int, niceness: int) -> None:
    """Let other processes go before those of the session with this leader."""
    os.setpriority(os.PRIO_PGRP, leader, niceness)
    group = Path(f"/proc/{leader}/autogroup")
    if group.exists():  # Linux may share the cores out by session first, see sched(7)
        group.write_text(str(niceness))


class WorstTenantProcess:
    """The tenant from `__enter__` to `__exit__`.

    Args:
        kubeconfig: Of the tenant's account.
        sector: The sector that the other tenants' pods name.
        means: `attacks` or `busy`.
        niceness: Of his process: elsewhere he has a machine of his own.
    """

    def __init__(self, kubeconfig: Path, sector: str, means: str, niceness: int) -> None:
        self._argv = [sys.executable, "-m", __name__, str(kubeconfig), sector, means]
        self._niceness = niceness
        self.answers: Counter[str] = Counter()
        """By attack and status of the API server's answer."""

    def __enter__(self) -> Self:
        # In a session of its own: Linux may share the cores out by session first.
        self._process = subprocess.Popen(self._argv, stdout=subprocess.PIPE, start_new_session=True)
        yield_cores(self._process.pid, self._niceness)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        told, _nothing = self._process.communicate(timeout=STOP_SECONDS)
        assert self._process.returncode == 0, "what he did wrong is on stderr"
        self.answers.update(json.loads(told))

    @property
    def made(self) -> Counter[str]:
        """Objects that were written, by attack."""
        found: Counter[str] = Counter()
        for key, count in self.answers.items():
            attack, _, status = key.rpartition(" ")
            if status in {"200", "201"}:
                found[attack] += count
        return found


class WorstTenant:
    """Attacks until told to stop, one kind after the other, as fast as the API server answers.

    Args:
        kubeconfig: Of the tenant's account.
        sector: The sector that the other tenants' pods name: some of the attacks aim there.
        attacks: What is written, and how often before it is the turn of the next.
    """

    def __init__(
        self, kubeconfig: Path, sector: str, attacks: "Sequence[tuple[str, int, Attack]]"
    ) -> None:
        self._attacks = attacks
        self._api = connect(str(kubeconfig))
        self._sector = sector
        self._number = 0
        self._alive = 0
        self.answers: Counter[str] = Counter()
        """By attack and status of the API server's answer."""

    def run(self, stopped: Callable[[], bool]) -> None:
        """Attack; whatever the API server answers is counted."""
        for _, times, attack in cycle(self._attacks):
            for _ in range(times):
                if stopped():
                    self._api.close()
                    return
                self._number += 1
                attack(self, self._number)
            self._clear_some()

    def _clear_some(self) -> None:
        """Deletions hurt too: they are changes, and the same names come again."""
        if self._alive > PODS_MAX:
            self._ask("clear", "DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods")
            self._alive = 0

    def _ask(self, attack: str, method: str, path: str, body: Json | None = None) -> None:
        content = "application/merge-patch+json" if method == "PATCH" else None
        try:
            if content:
                status = self._api.request(method, path, body=body, content_type=content).status
            else:
                status = self._api.request(method, path, body=body).status
        except PortError as error:
            self.answers[f"{attack} {type(error).__name__}"] += 1
            return
        self.answers[f"{attack} {status}"] += 1

    def post(self, attack: str, group: str, plural: str, body: Json) -> None:
        """Create an object in the tenant's namespace."""
        self._ask(attack, "POST", f"{group}/namespaces/{NAMESPACE}/{plural}", body)

    def patch(self, attack: str, group: str, place: str, body: Json) -> None:
        """Change an object of the tenant's namespace: `plural/name`."""
        self._ask(attack, "PATCH", f"{group}/namespaces/{NAMESPACE}/{place}", body)

    def delete(self, attack: str, group: str, place: str) -> None:
        """Delete one."""
        self._ask(attack, "DELETE", f"{group}/namespaces/{NAMESPACE}/{place}")

    def pod(self, attack: str, made: Json, *, aimed: bool = True) -> None:
        """Create a pod of one of the benchmark's shapes, in the others' sector if `aimed`."""
        spec = {**made["spec"]}
        if aimed:
            spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "sector": self._sector}
        for container in spec["containers"]:
            container["image"] = "registry/app:1"
            container["resources"]["limits"] = {
                name: amount
                for name, amount in container["resources"]["requests"].items()
                if "/" in name
            }
        body = {
            "metadata": {"name": f"{attack}-{self._number}", "labels": made["metadata"]["labels"]},
            "spec": spec,
        }
        self._alive += 1
        self.post(attack, "/api/v1", "pods", body)


def _largest(shape: str, count: int) -> Attack:
    """A pod with as many of something as the API server admits."""
    (made,) = hostile.SHAPES[shape].make(count)
    assert len(json.dumps(made)) < LARGEST_BODY
    return lambda tenant, _: tenant.pod(shape, made)


def _of_its_own(shape: str, per_pod: int = 1) -> Attack:
    """Pods each of which has something that few others have."""

    def attack(tenant: WorstTenant, number: int) -> None:
        tenant.pod(shape, hostile.SHAPES[shape].make(per_pod * (number % KINDS + 1))[-1])

    return attack


def _lease(tenant: WorstTenant, number: int) -> None:
    """The reconciler's own Lease in the wrong namespace: for 68 years, with a state that lies."""
    fleets = [
        {"fleet": "web-small", "region": "us-west-2", "unavailable_until": "2099-01-01T00:00:00Z"}
    ]
    state = json.dumps({"version": 1, "fleets": fleets})
    now = "2099-01-01T00:00:00.000001Z"
    body = {
        "metadata": {
            "name": "fleet-reconciler",
            "annotations": {
                "fleet-reconciler.io/fleet-state": state,
                "fleet-reconciler.io/last-drain": "2099-01-01T00:00:00Z",
            },
        },
        "spec": {
            "holderIdentity": f"worst-{number}",
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": now,
            "renewTime": now,
        },
    }
    group = "/apis/coordination.k8s.io/v1"
    tenant.post("lease", group, "leases", body)
    tenant.patch("lease", group, "leases/fleet-reconciler", {"spec": body["spec"]})


def _budget(tenant: WorstTenant, number: int) -> None:
    lines = [{"key": f"l{number}-{i}", "operator": "DoesNotExist"} for i in range(50)]
    body = {
        "metadata": {"name": f"budget-{number % KINDS}"},
        "spec": {"maxUnavailable": 0, "selector": {"matchExpressions": lines}},
    }
    tenant.post("budget", "/apis/policy/v1", "poddisruptionbudgets", body)


def _deployment(tenant: WorstTenant, number: int) -> None:
    """Made, rolled and deleted, over and over."""
    name, group = f"churn-{number % 3}", "/apis/apps/v1"
    labels = {"app": name}
    annotations = {"turn": str(number), "karpenter.sh/do-not-disrupt": "true"}
    requests = {"resources": {"requests": {"cpu": "10m"}}}
    container = {"name": "c", "image": "registry/app:1", **requests}
    spec = {
        "replicas": 10,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"containers": [container]},
        },
    }
    tenant.post("deployment", group, "deployments", {"metadata": {"name": name}, "spec": spec})
    rolled = {"spec": {"template": {"metadata": {"annotations": {"turn": f"{number}-again"}}}}}
    tenant.patch("deployment", group, f"deployments/{name}", rolled)
    if number % 5 == 0:
        tenant.delete("deployment", group, f"deployments/{name}")


def _annotation_bomb(tenant: WorstTenant, number: int) -> None:
    made = pod(f"bomb-{number}", {"nodeSelector": {"never": "there"}})
    made["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "x" * 250_000}
    tenant.pod("annotation-bomb", made, aimed=False)


def _event(tenant: WorstTenant, number: int) -> None:
    body = {
        "metadata": {"generateName": "noise-"},
        "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": f"p{number}"},
        "reason": "Noise",
        "message": "x" * 1000,
        "type": "Warning",
        "source": {"component": "fleet-reconciler"},
    }
    tenant.post("event", "/api/v1", "events", body)


def _daemon_set(tenant: WorstTenant, number: int) -> None:
    """Daemons for nodes that there are not, so that each new node is asked about them."""
    labels = {"app": f"daemon-{number % KINDS}"}
    requests = {"resources": {"requests": {"cpu": "1m"}}}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "containers": [{"name": "c", "image": "registry/app:1", **requests}],
                "nodeSelector": {f"never-{number}": "there"},
            },
        },
    }
    body = {"metadata": {"name": f"daemon-{number % KINDS}"}, "spec": spec}
    tenant.post("daemonset", "/apis/apps/v1", "daemonsets", body)


def _large_daemon_set(tenant: WorstTenant, _: int) -> None:
    """One for all nodes that no node has room for, and that asks for a port of each."""
    labels = {"app": "large-daemon"}
    container = {
        "name": "c",
        "image": "registry/app:1",
        "resources": {"requests": {"cpu": "1000"}},
        "ports": [{"containerPort": 443, "hostPort": 443}],
    }
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    body = {"metadata": {"name": "large-daemon"}, "spec": spec}
    tenant.post("large daemonset", "/apis/apps/v1", "daemonsets", body)


def _long_claim(tenant: WorstTenant, number: int) -> None:
    """A claim whose name looks like a token over and over, which is costly to look for."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": LONG_NAME}}
    tenant.pod("long-claim", pod(f"claim-{number}", {"volumes": [claim]}))


def _on_no_node(tenant: WorstTenant, number: int) -> None:
    """Bound to a node that there is not, as if the list of nodes had a hole."""
    tenant.pod("no-node", pod(f"nowhere-{number}", {"nodeName": "no-such-node"}), aimed=False)


ATTACKS: Sequence[tuple[str, int, Attack]] = (
    ("lease", 2, _lease),
    ("one pod, 5,000 spread constraints", 3, _largest("one-pod-spread", 5000)),
    ("one pod, 10,000 resources", 3, _largest("one-pod-extended-resources", 10_000)),
    ("one pod, 10,000 host ports", 3, _largest("one-pod-host-ports", 10_000)),
    ("spread constraints", 20, _of_its_own("spread-constraints", 16)),
    ("node selectors", 30, _of_its_own("node-selectors")),
    ("topology keys", 30, _of_its_own("topology-keys")),
    ("anti-affinity to all others", 20, _of_its_own("anti-everything")),
    ("affinity chain", 20, _of_its_own("affinity-chain")),
    ("preferences", 20, _of_its_own("preferences")),
    ("extended resources", 20, _of_its_own("extended-resources")),
    ("node names", 20, _of_its_own("node-names")),
    ("annotation bombs", 5, _annotation_bomb),
    ("deployments", 10, _deployment),
    ("budgets", 20, _budget),
    ("daemon sets", 5, _daemon_set),
    ("a DaemonSet larger than any node", 1, _large_daemon_set),
    ("long names of claims", 3, _long_claim),
    ("pods on no node", 5, _on_no_node),
    ("events", 50, _event),
)
"""What is tried, and how often before it is the turn of the next."""


def _plain(tenant: WorstTenant, number: int) -> None:
    tenant.pod("pod", pod(f"plain-{number}"), aimed=False)


BUSY: Sequence[tuple[str, int, Attack]] = (
    ("pods", 171, _plain),
    ("deployments", 10, _deployment),
    ("budgets", 20, _budget),
    ("daemon sets", 5, _daemon_set),
    ("events", 50, _event),
)
"""What a tenant who means no harm writes as fast as he can: as many pods, all alike.

What the others wait longer beside him is the API server's, kube-scheduler's and KWOK's share."""


def main(kubeconfig: str, sector: str, means: str) -> None:
    """Attack until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    tenant = WorstTenant(Path(kubeconfig), sector, {"attacks": ATTACKS, "busy": BUSY}[means])
    tenant.run(stop.is_set)
    sys.stdout.write(json.dumps(tenant.answers))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the node watch's ServiceAccount may do: change the notice on the node that it runs on."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.model.actions import INTERRUPTION
from reconciler.model.errors import Conflict, Forbidden
from reconciler.model.interruption_annotation import WRITTEN_BY_NODE_WATCH
from reconciler.node_watch.decision import TAINT, NodeChange, OwnNode
from reconciler.node_watch.own_node import ApiPlace, OwnNodeClient
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.installed import NAMESPACE, apply, documents, manifest, remove
from tests.e2e.rights import rights_of
from tests.waiting import until

WATCH = "fleet-reconciler-node-watch"
SPACE = f"/api/v1/namespaces/{NAMESPACE}-node-watch"
ACCOUNT = f"{SPACE}/serviceaccounts/{WATCH}"
OWN, OTHER = "watched-node", "other-node"
REFUSED = frozenset({403, 422})
TEXT = "terminate/2026-01-31T12:02:00Z"
NOTICE = {INTERRUPTION: TEXT, WRITTEN_BY_NODE_WATCH: TEXT}
_MERGE = "application/merge-patch+json"


class Installed:
    """The node watch's objects, two nodes, and a pod of it on one of them."""

    def __init__(self, plane: ControlPlane, api: Transport, folder: Path) -> None:
        self.plane = plane
        self.api = api
        self.folder = folder
        found = documents(manifest(folder, "--node-watch"))
        self.objects = [each for each in found if each["metadata"]["name"].startswith(WATCH)]
        apply(api, self.objects)
        until("the account is there", lambda: api.request("GET", ACCOUNT).status == 200)
        for name in (OWN, OTHER):
            body = {
                "metadata": {"name": name, "annotations": {"a/b": "c"}, "labels": {"d": "e"}},
                "spec": {"taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}]},
            }
            api.expect("POST", "/api/v1/nodes", body=body)
        container = {"name": "c", "image": "registry/app:1"}
        spec = {"nodeName": OWN, "serviceAccountName": WATCH, "containers": [container]}
        body = {"metadata": {"name": "pod"}, "spec": spec}
        pod = api.expect("POST", f"{SPACE}/pods", body=body).json()
        bound = {"kind": "Pod", "apiVersion": "v1", "name": "pod", "uid": pod["metadata"]["uid"]}
        self.token = self.token_of(boundObjectRef=bound)
        self.connections: list[Transport] = []

    def token_of(self, **spec: Any) -> str:
        """A token of the ServiceAccount."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, **spec},
        }
        return str(self.api.expect("POST", f"{ACCOUNT}/token", body=body).json()["status"]["token"])

    def connected(self, token: str) -> Transport:
        """Requests with a token."""
        body = json.loads(self.plane.kubeconfig.read_text())
        body["users"] = [{"name": "account", "user": {"token": token}}]
        body["contexts"][0]["context"]["user"] = "account"
        file = self.folder / f"{len(self.connections)}.kubeconfig"
        file.write_text(json.dumps(body))
        self.connections.append(connect(str(file)))
        return self.connections[-1]

    def client(self, node: str) -> OwnNodeClient:
        """The node watch's own client, as it runs in the pod."""
        cluster = json.loads(self.plane.kubeconfig.read_text())["clusters"][0]["cluster"]
        account = self.folder / "account"
        account.mkdir(exist_ok=True)
        (account / "token").write_text(self.token)
        data = cluster.get("certificate-authority-data")
        authority = base64.b64decode(data) if data else None
        (account / "ca.crt").write_bytes(
            authority or Path(cluster["certificate-authority"]).read_bytes()
        )
        return OwnNodeClient(ApiPlace(url=cluster["server"], account=account), node)

    def end(self) -> None:
        """Take everything away again.

        No kubelet ends the pods: left to their grace period, they would hold their namespace for
        nearly a minute.
        """
        for connection in self.connections:
            connection.close()
        for name in (OWN, OTHER):
            self.api.request("DELETE", f"/api/v1/nodes/{name}")
        self.api.request("DELETE", f"{SPACE}/pods?gracePeriodSeconds=0")
        remove(self.api, self.objects)


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The install; the policy is in force when its first refusal is seen."""
    api = connect(str(plane.kubeconfig))
    made = Installed(plane, api, tmp_path_factory.mktemp("node-watch"))
    account = made.connected(made.token)
    body = {"metadata": {"labels": {"try": "yes"}}}
    until("the policy refuses", lambda: patched(account, OTHER, body) in REFUSED)
    yield made
    made.end()
    api.close()


def written(client: OwnNodeClient, change: Callable[[OwnNode], NodeChange]) -> OwnNode:
    """The node after the change; one that its controllers changed meanwhile is read again."""

    def accepted() -> bool:
        node = client.read()
        try:
            client.write(node, change(node))
        except Conflict:
            return False
        return True

    until("the node is changed", accepted)
    return client.read()


def keys(node: OwnNode) -> set[str]:
    """The keys of a node's taints."""
    return {taint["key"] for taint in node.taints}


def patched(account: Transport, node: str, body: Any) -> int:
    """The status of a patch of a node."""
    reply = account.request("PATCH", f"/api/v1/nodes/{node}", body=body, content_type=_MERGE)
    return reply.status


def test_rights_are_to_read_and_patch_nodes(installed: Installed) -> None:
    """Every node runs a pod with them."""
    assert [str(right).split() for right in rights_of(installed.objects)] == [
        ["ClusterRole", "get", "nodes"],
        ["ClusterRole", "patch", "nodes"],
    ]


def test_node_watch_writes_and_takes_back_its_notice(installed: Installed) -> None:
    """A policy that refuses what the program does is an outage at the next interruption."""
    client = installed.client(OWN)
    noticed = written(
        client, lambda node: NodeChange(annotations=NOTICE, taints=(*node.taints, TAINT))
    )
    assert noticed.annotations.items() >= NOTICE.items()
    assert {"team", TAINT["key"]} <= keys(noticed)
    after = written(
        client,
        lambda node: NodeChange(
            annotations=dict.fromkeys(NOTICE),
            taints=tuple(taint for taint in node.taints if taint["key"] != TAINT["key"]),
        ),
    )
    assert "team" in keys(after)
    assert TAINT["key"] not in keys(after)
    assert not after.annotations.keys() & NOTICE.keys()


def test_another_node_is_out_of_reach(installed: Installed) -> None:
    """Whoever breaks out on one spot node would have all others emptied."""
    with pytest.raises(Forbidden, match="may only patch the node"):
        written(installed.client(OTHER), lambda _: NodeChange(annotations=NOTICE))


def test_token_that_names_no_node_changes_nothing(installed: Installed) -> None:
    """One that was requested by hand is bound to no pod, hence to no node."""
    account = installed.connected(installed.token_of())
    assert patched(account, OWN, {"metadata": {"annotations": NOTICE}}) in REFUSED


TEAM = {"key": "team", "value": "ml", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"labels": {"d": "other"}}},
        {"metadata": {"labels": {"new": "label"}}},
        {"metadata": {"annotations": {"a/b": "other"}}},
        {"metadata": {"annotations": {"a/b": None}}},
        {"metadata": {"annotations": {"fleet-reconciler.io/drain-started": "now"}}},
        {"metadata": {"finalizers": ["example.com/kept"]}},
        {"spec": {"taints": []}},
        {"spec": {"taints": [TEAM, {"key": "x", "effect": "NoExecute"}]}},
        {"spec": {"taints": [TEAM, {**TAINT, "effect": "NoExecute"}]}},
        {"spec": {"taints": [TEAM, {**TAINT, "value": "scale-in"}]}},
        {"spec": {"unschedulable": True}},
        {"spec": {"providerID": "aws:///us-west-2a/i-0a"}},
    ],
    ids=str,
)
def test_nothing_else_of_its_own_node_can_be_changed(installed: Installed, body: Any) -> None:
    """A label decides which pods come to a node, and with them which secrets."""
    assert patched(installed.connected(installed.token), OWN, body) in REFUSED


def test_nothing_beyond_nodes_is_granted(installed: Installed) -> None:
    """The ways from a node to the whole cluster."""
    account = installed.connected(installed.token)
    refused = [
        ("GET", "/api/v1/nodes"),
        ("DELETE", f"/api/v1/nodes/{OWN}"),
        ("GET", "/api/v1/secrets"),
        ("GET", f"{SPACE}/pods"),
    ]
    assert [account.request(method, path).status for method, path in refused] == [403] * 4
    status = f"/api/v1/nodes/{OWN}/status"
    assert account.request("PATCH", status, body={}, content_type=_MERGE).status == 403

"""One scenario: a sector with fleets of its own, a namespace, and the reconciler as a process."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from reconciler.adapters.kubernetes import KubernetesCluster, Transport
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import PodKey
from reconciler.model.snapshot import ClusterState
from reconciler.records.kubernetes import LEASE_NAME
from reconciler.sandbox.aws.events.queue import count_messages, make_interruption_queue
from tests.e2e.promises import Promises, Tally
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import change_template, create_fleet, user_data
from tests.sandbox.capacity.world import Program, World
from tests.waiting import until

ZONE = "topology.kubernetes.io/zone"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE_NAME}"
_PATIENCE = float(os.environ.get("RECONCILER_E2E_PATIENCE", "1"))  # noqa: TID251 - a test's knob
_LONGEST_SECONDS = 180.0
_MERGE = "application/merge-patch+json"
_PATHS = {
    "Job": "/apis/batch/v1",
    "Deployment": "/apis/apps/v1",
    "StatefulSet": "/apis/apps/v1",
    "DaemonSet": "/apis/apps/v1",
    "PodDisruptionBudget": "/apis/policy/v1",
    "Pod": "/api/v1",
    "Service": "/api/v1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetShape:
    """A fleet of the scene's sector."""

    size: str = "small"
    """small: 4 or 8 vCPU, 32 GiB (in a plan pods get 3 and 28); medium: 8 or 16, 64 GiB."""
    zone: str = ""
    target: int = 0
    lowest: int = 0
    most: int = 10
    taints: Sequence[Mapping[str, str]] = ()
    expire_after: str = ""
    spot: bool = True
    fallback: bool = False

    @property
    def line(self) -> str:
        """The fleet in the sector config."""
        text = f"size: {self.size}, min_capacity: {self.lowest}, max_capacity: {self.most}"
        if not self.spot:
            text += ", spot: false"
        if self.fallback:
            text += ", spot_fallback: on-demand"
        if self.zone:
            text += f", zone: {self.zone}"
        if self.expire_after:
            text += f", expire_after: {self.expire_after}"
        if self.taints:
            taints = ", ".join(
                "{" + ", ".join(f"{key}: {value}" for key, value in taint.items()) + "}"
                for taint in self.taints
            )
            text += f", taints: [{taints}]"
        return "    - {" + text + "}"


class Scene:
    """Starts with `with`; everything of it is gone afterwards, and its promises are compared.

    Args:
        sandbox: AWS and the joiner over the control plane.
        api: Requests to it as its administrator.
        cluster: The cluster, watched.
        folder: For config and log.
        name: Of sector and namespace.
        tally: Where kept and broken promises are counted.
    """

    def __init__(
        self,
        sandbox: OnRealCluster,
        api: Transport,
        cluster: KubernetesCluster,
        folder: Path,
        name: str,
        tally: Tally,
    ) -> None:
        self._sandbox = sandbox
        self.api = api
        self._cluster = cluster
        self._folder = folder
        self.name = name
        self._tally = tally
        self._world = World(sandbox)
        self._seen: dict[PodKey, Pod] = {}
        self._fleets: dict[str, str] = {}
        self.program: Program | None = None
        self._promises: Promises | None = None
        self._cluster_wide: list[str] = []

    def open(self, *fleets: FleetShape, config: str = "") -> Self:
        """Make namespace and fleets, and start the reconciler; returns after its first plan.

        Args:
            fleets: Of the sector.
            config: More lines for the sector config, at its top level.
        """
        self.api.expect("POST", "/api/v1/namespaces", body={"metadata": {"name": self.name}})
        account = f"/api/v1/namespaces/{self.name}/serviceaccounts/default"
        until("pods can be made", lambda: self.api.request("GET", account).status == 200)
        for fleet in fleets:
            create_fleet(
                self._sandbox.aws_url,
                fleet.size,
                fleet.target,
                sector=self.name,
                zone=fleet.zone,
                taints=fleet.taints,
                spot=fleet.spot,
            )
        wanted = sum(each.target for each in fleets)
        self.until(lambda _: len(self.ready_nodes()) >= wanted, "the first nodes are Ready")
        self._start(fleets, config)
        return self

    def _start(self, fleets: Sequence[FleetShape], config: str) -> None:
        file = self._folder / "sectors.yaml"
        lines = [
            "cluster: analytics",
            "regions: [us-west-2]",
            "sleep_interval: 1",
            f"default_sector: {self.name}",
            "listen: 127.0.0.1:0",
            config or "scale_in: {idle_threshold: 2s}",
            "sectors:",
            f"  {self.name}:",
            "    kind: memory",
            "    fleets:",
            *(fleet.line for fleet in fleets),
        ]
        file.write_text("\n".join([*lines, ""]))
        self.program = Program(self._sandbox, file, "--pod-namespace", self.name)
        self.program.until_ready()
        self._promises = Promises(self.program.get, self.name)
        self._promises.start()

    def close(self) -> None:
        """Compare promises, then leave nothing behind."""
        try:
            if self._promises is not None:
                self._promises.stop()
                self._promises.compare(self._observed(), self._seen, self._fleets, self._tally)
        finally:
            if self.program is not None:
                self.program.end()
                self.program.__exit__()
            self._clear()

    def _clear(self) -> None:
        for path in [*self._cluster_wide, f"/api/v1/namespaces/{self.name}", _LEASE]:
            self.api.request("DELETE", path)
        now = {"gracePeriodSeconds": 0}
        self.api.request("DELETE", f"/api/v1/namespaces/{self.name}/pods", query=now)
        self._world.remove_fleets(self.name)
        self.until(lambda _: not self.nodes(), "its nodes are gone")
        self._world.close()

    # ---- what is there ---------------------------------------------------------------------

    def _observed(self) -> ClusterState:
        state = self._cluster.observe()
        self._fleets |= {str(node.name): node.labels.get("fleet", "") for node in state.nodes}
        for pod in state.pods:
            if pod.key.namespace == self.name:
                self._seen[pod.key] = pod
        return state

    def until(
        self, holds: Callable[[ClusterState], Any], what: str, seconds: float = _LONGEST_SECONDS
    ) -> ClusterState:
        """Observe at each change of the cluster until something holds."""

        def look() -> ClusterState | None:
            state = self._observed()
            return state if holds(state) else None

        def told() -> str:
            log = "" if self.program is None else self.program.log_text[-6000:]
            pods = [(p.key.name, p.phase, p.node_name) for p in self.pods()]
            return f"{what}\n{pods}\n{log}"

        wait = self._cluster.wait_for_change
        return until(told, look, seconds=seconds * _PATIENCE, look_seconds=0.5, pause=wait)

    def pods(self) -> list[Pod]:
        """The namespace's pods, DaemonSets' left out."""
        state = self._observed()
        return [p for p in state.pods if p.key.namespace == self.name and not p.daemon]

    def nodes(self) -> list[Node]:
        """The sector's nodes."""
        state = self._cluster.observe()
        return [node for node in state.nodes if node.labels.get("sector") == self.name]

    def ready_nodes(self) -> list[Node]:
        """Those that pods can be bound to."""
        return [
            node
            for node in self.nodes()
            if node.ready and all(taint.effect == "PreferNoSchedule" for taint in node.taints)
        ]

    def running(self) -> list[Pod]:
        """The pods that run."""
        return [pod for pod in self.pods() if pod.phase == "Running" and not pod.deleting]

    def zones(self) -> set[str]:
        """The zones in which pods run."""
        by_node = {node.name: node.labels[ZONE] for node in self.nodes()}
        return {by_node[pod.node_name] for pod in self.running() if pod.node_name}

    def targets(self) -> dict[str, int]:
        """Target capacity by fleet."""
        found = self._world.targets()
        return {fleet: n for fleet, n in found.items() if fleet.startswith(f"{self.name}-")}

    def actions(self, kind: str) -> list[Mapping[str, Any]]:
        """The applied actions of a kind so far."""
        assert self.program is not None
        return [e for e in self.program.events("action_applied") if e["action"] == kind]

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """The log's lines of an event so far."""
        assert self.program is not None
        return list(self.program.events(name))

    def plan(self) -> Mapping[str, Any]:
        """The last plan."""
        assert self.program is not None
        found: Mapping[str, Any] = json.loads(self.program.get("/api/plan")[1])
        return found

    def until_planned_again(self, times: int = 4) -> None:
        """Let the reconciler think about it that many times more."""
        promises = self._promises
        assert promises is not None
        wanted = promises.moments + times
        self.until(lambda _: promises.moments >= wanted, f"{times} more plans")

    def until_empty(self) -> None:
        """Wait until the sector has no nodes and wants none."""
        self.until(lambda _: not self.nodes() and not any(self.targets().values()), "no nodes")

    # ---- what people do ---------------------------------------------------------------------

    def create(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Create an object of the namespace."""
        self.api.expect(
            "POST", self._path(kind), body={"metadata": {"name": name}, "spec": dict(spec)}
        )

    def create_cluster_wide(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object without a namespace; it goes with the scene."""
        self.api.expect("POST", path, body=dict(body))
        self._cluster_wide.append(f"{path}/{body['metadata']['name']}")

    def get(self, kind: str, name: str) -> Mapping[str, Any]:
        """An object as it is now."""
        found: Mapping[str, Any] = self.api.expect("GET", f"{self._path(kind)}/{name}").json()
        return found

    def has(self, kind: str, name: str) -> bool:
        """Whether an object is there now."""
        return self.api.request("GET", f"{self._path(kind)}/{name}").status == 200

    def patch(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Change an object's spec."""
        path = f"{self._path(kind)}/{name}"
        self.api.expect("PATCH", path, body={"spec": dict(spec)}, content_type=_MERGE)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and what it owns."""
        query = {"propagationPolicy": "Background"}
        self.api.expect("DELETE", f"{self._path(kind)}/{name}", query=query)

    def annotate_node(self, node: Node, annotations: Mapping[str, str]) -> None:
        """Annotate a node, as whoever plays its kubelet reads it."""
        body = {"metadata": {"annotations": dict(annotations)}}
        self.api.expect("PATCH", f"/api/v1/nodes/{node.name}", body=body, content_type=_MERGE)

    def interruption_queue(self) -> str:
        """The URL of a queue of this scene that EventBridge fills."""
        return make_interruption_queue(self._sandbox.aws_url, "us-west-2", self.name)

    def queued(self) -> int:
        """How many messages of that queue nobody has deleted."""
        return count_messages(self._sandbox.aws_url, "us-west-2", self.name)

    def interrupt(self, *nodes: Node, seconds: float = 120.0) -> None:
        """EC2 announces that it takes these nodes back in two minutes, and does it after these."""
        self._sandbox.control.interrupt([str(node.instance_id) for node in nodes], seconds)

    def spot_shortage(self) -> None:
        """EC2 has no spot capacity from now on."""
        self._sandbox.control.limit_capacity(
            lifecycle="spot", code="InsufficientInstanceCapacity", remaining=0
        )

    def spot_is_back(self) -> None:
        """EC2 has spot capacity again."""
        self._sandbox.control.lift_capacity()

    def change_template(self, fleet: str, data: str | None = None) -> str:
        """A fleet's launch template gets a new version; its number."""
        return change_template(self._sandbox.aws_url, fleet, data)

    def user_data(self, size: str) -> str:
        """The user data with which an instance of a fleet joins."""
        return user_data("analytics", f"{self.name}-{size}", size, self.name, ())

    def _path(self, kind: str) -> str:
        return f"{_PATHS[kind]}/namespaces/{self.name}/{kind.lower()}s"


def pod_spec(cpu: str, memory: str = "256Mi", **more: Any) -> dict[str, Any]:
    """A pod of one container; more keys of a pod spec go on top."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    container = {"name": "main", "image": "registry/app:1", "resources": resources}
    return {"containers": [container], **more}


def near_each_other(labels: Mapping[str, str]) -> dict[str, Any]:
    """The affinity of pods that must all be in one zone."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": dict(labels)}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def template(
    labels: Mapping[str, str],
    spec: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A workload's pod template and the selector for it."""
    metadata = {"labels": dict(labels), "annotations": dict(annotations or {})}
    return {
        "selector": {"matchLabels": dict(labels)},
        "template": {"metadata": metadata, "spec": dict(spec)},
    }

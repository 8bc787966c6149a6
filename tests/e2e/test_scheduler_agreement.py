"""The placement filters against kube-scheduler's, pod by pod, on random small clusters."""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster, Transport, connect
from reconciler.model.cluster import Pod
from reconciler.model.errors import Conflict, PortError
from reconciler.model.ids import PodKey, Region
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.planner.plan_opening import open_builder
from reconciler.planner.settings import PlannerSettings
from reconciler.sandbox.cluster.clock import system_now
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.observing_scheduler import SCHEDULER_NAME, ObservingScheduler
from tests.e2e.scenario import FINISHED, LEAVING, SCENARIO, Scenario
from tests.e2e.scenarios import make_scenario, objects_in_order
from tests.waiting import until

_SETTINGS = PlannerSettings(cluster="e2e", regions=(Region("us-west-2"),), sectors=())
_COUNT = int(os.environ.get("RECONCILER_E2E_SCENARIOS", "150"))  # noqa: TID251 - a test's knob
_SEED = int(os.environ.get("RECONCILER_E2E_SEED", "1"))  # noqa: TID251 - a test's knob
_WORKERS = 8
_LOOK_SECONDS = 1.0
"""Lists of a thousand objects are no light question."""
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What kube-scheduler said about a pod."""

    nodes: frozenset[str]
    message: str


class Field:
    """Scenarios on the control plane."""

    def __init__(self, plane: ControlPlane, api: Transport) -> None:
        self._plane = plane
        self._api = api
        self._pool = ThreadPoolExecutor(_WORKERS)

    def build(self, scenarios: Sequence[Scenario]) -> None:
        """Create everything but the pods under test; returns when it has settled."""
        waves = [objects_in_order(scenario) for scenario in scenarios]
        for number in range(3):
            self._create(each for scenario in waves for each in scenario[number])
        names = {n["metadata"]["name"] for s in scenarios for n in s.nodes}
        until(
            "all nodes are Ready",
            lambda: self._ready(names),
            seconds=300,
            look_seconds=_LOOK_SECONDS,
        )
        until("all claims that name a volume are bound", self._claims_bound)
        until("all bound pods run", self._all_run, seconds=300, look_seconds=_LOOK_SECONDS)
        list(self._pool.map(self._retire, (pod for s in scenarios for pod in s.bound)))

    def ask(
        self, scenarios: Sequence[Scenario], scheduler: ObservingScheduler
    ) -> Mapping[PodKey, Verdict]:
        """Create the pods under test and collect what kube-scheduler says of each."""
        self._create(each for s in scenarios for each in objects_in_order(s)[3])
        wanted = sum(len(s.probes) for s in scenarios)
        answers: dict[PodKey, Verdict] = {}

        def answered() -> bool:
            answers.update(self._verdicts(scheduler))
            return len(answers) == wanted

        until(
            "kube-scheduler has tried every pod", answered, seconds=300, look_seconds=_LOOK_SECONDS
        )
        return answers

    def close(self, scenarios: Sequence[Scenario]) -> None:
        """Remove everything again."""
        paths = [
            f"/api/v1/namespaces/{n['metadata']['name']}" for s in scenarios for n in s.namespaces
        ]
        list(self._pool.map(self._release, (pod for s in scenarios for pod in s.bound)))
        now = {"gracePeriodSeconds": 0}
        list(self._pool.map(lambda p: self._api.request("DELETE", f"{p}/pods", query=now), paths))
        cluster_wide = ("persistentvolumes", "nodes")
        for kind in cluster_wide:
            self._api.request("DELETE", f"/api/v1/{kind}", query=now)
        for kind in ("storageclasses", "csinodes"):
            self._api.request("DELETE", f"/apis/storage.k8s.io/v1/{kind}", query=now)
        list(self._pool.map(lambda path: self._api.request("DELETE", path), paths))
        self._api.request("DELETE", "/apis/node.k8s.io/v1/runtimeclasses")
        self._pool.shutdown()
        until("no nodes are left", lambda: not self._items("/api/v1/nodes"))
        until("no pods are left", lambda: not self._items("/api/v1/pods"))

    def _retire(self, pod: Mapping[str, Any]) -> None:
        """Let a pod succeed, or begin to delete it, when it is meant to."""
        path = _path(pod)
        if LEAVING in pod["metadata"].get("finalizers", ()):
            self._api.expect("DELETE", path, query={"gracePeriodSeconds": 0})
        if FINISHED in pod["metadata"].get("annotations", ()):
            body = {"status": {"phase": "Succeeded"}}
            self._api.expect("PATCH", f"{path}/status", body=body, content_type=_MERGE)

    def _release(self, pod: Mapping[str, Any]) -> None:
        if "finalizers" in pod["metadata"]:
            body = {"metadata": {"finalizers": None}}
            self._api.request("PATCH", _path(pod), body=body, content_type=_MERGE)

    def _create(self, objects: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        def create(each: tuple[str, Mapping[str, Any]]) -> str:
            path, body = each
            try:
                self._api.expect("POST", path, body=dict(body))
            except PortError as error:
                # The controller that makes service accounts may have been quicker.
                if not (isinstance(error, Conflict) and path.endswith("/serviceaccounts")):
                    return f"{error}: {json.dumps(body)}"
            return ""

        refused = [text for text in self._pool.map(create, objects) if text]
        assert not refused, "\n".join(refused)

    def _items(self, path: str, **query: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._api.expect("GET", path, query=query).json()["items"]
        return items

    def _ready(self, names: set[str]) -> bool:
        """Ready, and the taint that every node is born with is gone."""
        ready = {
            node["metadata"]["name"]
            for node in self._items("/api/v1/nodes")
            if not any(
                taint["key"].startswith("node.kubernetes.io/not-ready")
                for taint in node["spec"].get("taints", ())
            )
            and bool(node["spec"].get("unschedulable"))
            == any(
                taint["key"] == "node.kubernetes.io/unschedulable"
                for taint in node["spec"].get("taints", ())
            )
        }
        return names <= ready

    def _claims_bound(self) -> bool:
        claims = self._items("/api/v1/persistentvolumeclaims")
        return all(c["status"]["phase"] == "Bound" for c in claims if c["spec"].get("volumeName"))

    def _all_run(self) -> bool:
        return not self._items("/api/v1/pods", fieldSelector="status.phase!=Running")

    def _verdicts(self, scheduler: ObservingScheduler) -> Iterator[tuple[PodKey, Verdict]]:
        query = f"spec.schedulerName={SCHEDULER_NAME}"
        for pod in self._items("/api/v1/pods", fieldSelector=query):
            metadata = pod["metadata"]
            for condition in pod["status"].get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    assert condition["reason"] == "Unschedulable", condition
                    seen = set(scheduler.feasible.get(metadata["uid"], [frozenset()]))
                    assert len(seen) == 1, (metadata["name"], seen)
                    key = PodKey(
                        namespace=metadata["namespace"],
                        name=metadata["name"],
                        uid=metadata["uid"],
                    )
                    yield key, Verdict(nodes=seen.pop(), message=condition["message"])


def _path(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _of_scenario(state: ClusterState, scenario: Scenario) -> ClusterState:
    """Only what belongs to it; volumes are distinguished by name."""
    spaces = {namespace["metadata"]["name"] for namespace in scenario.namespaces}
    prefix = f"{scenario.tag}-"
    return replace(
        state,
        nodes=tuple(n for n in state.nodes if n.labels.get(SCENARIO) == scenario.tag),
        pods=tuple(p for p in state.pods if p.key.namespace in spaces),
        claims=tuple(c for c in state.claims if c.namespace in spaces),
        namespaces=tuple(n for n in state.namespaces if n.name in spaces),
        volumes=tuple(v for v in state.volumes if v.name.startswith(prefix)),
        storage_classes=tuple(c for c in state.storage_classes if c.name.startswith(prefix)),
        csi_nodes=tuple(c for c in state.csi_nodes if c.name.startswith(prefix)),
    )


def _our_nodes(state: ClusterState) -> Mapping[PodKey, frozenset[str]]:
    """The nodes that the what-if cluster leaves to each pod under test."""
    probes: list[Pod] = [p for p in state.pods if p.node_name is None]
    builder = open_builder(Snapshot(at=system_now(), cluster=state), _SETTINGS, also=probes)
    found = {}
    for pod in probes:
        room = builder.sim.room(builder.view.table.of(pod, bound=False))
        found[pod.key] = frozenset(
            name for name, row in builder.view.row_of.items() if room[row] > 0
        )
    return found


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    """As many as asked for; RECONCILER_E2E_SCENARIOS and RECONCILER_E2E_SEED choose others."""
    return [make_scenario(number, _SEED) for number in range(_COUNT)]


@pytest.fixture(scope="module")
def verdicts(
    plane: ControlPlane, api: Transport, scenarios: list[Scenario]
) -> Iterator[tuple[Mapping[PodKey, Verdict], ClusterState]]:
    """What kube-scheduler says of every pod under test, and the cluster as our adapter sees it."""
    field = Field(plane, api)
    try:
        field.build(scenarios)
        with ObservingScheduler(plane) as scheduler:
            answers = field.ask(scenarios, scheduler)
            cluster = KubernetesCluster(connect(str(plane.kubeconfig)))
            try:
                state = cluster.observe()
            finally:
                cluster.close()
        yield answers, state
    finally:
        field.close(scenarios)


def test_feasible_nodes_equal_those_of_kube_scheduler(
    scenarios: list[Scenario], verdicts: tuple[Mapping[PodKey, Verdict], ClusterState]
) -> None:
    """A node that only we believe in is never launched for; one that only we refuse is bought."""
    answers, state = verdicts
    by_key: dict[tuple[str, str], Any] = {
        (p["metadata"]["namespace"], p["metadata"]["name"]): p for s in scenarios for p in s.probes
    }
    wrong: dict[str, list[str]] = defaultdict(list)
    asked = 0
    for scenario in scenarios:
        for key, ours in _our_nodes(_of_scenario(state, scenario)).items():
            asked += 1
            theirs = answers[key]
            if ours != theirs.nodes:
                wrong[scenario.tag].append(
                    f"{key.namespace}/{key.name}: ours {sorted(ours)},"
                    f" kube-scheduler {sorted(theirs.nodes)}: {theirs.message}\n"
                    f"{json.dumps(by_key[key.namespace, key.name]['spec'])}"
                )
    assert asked == len(answers) == sum(len(s.probes) for s in scenarios)
    assert sum(bool(answer.nodes) for answer in answers.values()) > asked // 10, (
        "too few fit anywhere"
    )
    assert not wrong, "\n".join(text for texts in wrong.values() for text in texts)

"""`reconciler run` between the emulated AWS and a real control plane."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from reconciler.adapters.kubernetes import Transport
from reconciler.records.kubernetes import LEASE_NAME
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.sandbox.joiner import Joiner, JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.e2e.waiting import until
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World

_DELAYS = Delays(launch_seconds=0.5, terminate_seconds=0.5, modify_seconds=0.2)
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_PODS = "/api/v1/namespaces/default/pods"


class OnRealCluster(Sandbox):
    """The sandbox with a real control plane in the place of the simulated one."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(SandboxSettings(delays=_DELAYS))
        self._plane = plane

    @property
    def kubeconfig(self) -> Path:
        """The control plane's."""
        return self._plane.kubeconfig

    def start(self) -> Self:
        """Start AWS and the joiner."""
        try:
            self._aws.start()
            joining = JoinerSettings(join_seconds=0.3, remove_seconds=0.3)
            self._joiner = Joiner(self._aws.url, self.kubeconfig, joining)
            self._joiner.start()
        except BaseException:
            self.stop()
            raise
        return self


@pytest.fixture
def sandbox(plane: ControlPlane) -> Iterator[Sandbox]:
    """AWS with two empty fleets, whose instances join the control plane."""
    with OnRealCluster(plane) as running:
        for size in ("small", "medium"):
            create_fleet(running.aws_url, size)
        yield running


@pytest.fixture
def world(sandbox: Sandbox, api: Transport) -> Iterator[World]:
    """The users' view."""
    seen = World(sandbox)
    yield seen
    seen.remove_pods()
    api.request(
        "DELETE", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE_NAME}"
    )
    seen.close()


def _job(name: str, pods: int, cpu: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "batch:1",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def test_job_scales_from_zero_runs_and_scales_back(
    world: World, api: Transport, tmp_path: Path
) -> None:
    """This is the program's purpose; here kube-scheduler, not our twin, places the pods."""
    config = tmp_path / "sectors.yaml"
    config.write_text(CONFIG)
    with Program(world.sandbox, config) as program:
        program.until_ready()
        api.expect("POST", _JOBS, body=_job("nightly", 6, "1500m"))

        def succeeded() -> int:
            status = api.expect("GET", f"{_JOBS}/nightly").json()["status"]
            return int(status.get("succeeded", 0))

        until("every pod of the job has succeeded", lambda: succeeded() == 6, 120)
        bound = {p["spec"]["nodeName"] for p in api.expect("GET", _PODS).json()["items"]}
        assert bound
        assert program.events("cycle_ended")
        world.until_idle()
        query = {"propagationPolicy": "Background"}
        api.expect("DELETE", f"{_JOBS}/nightly", query=query)
        code, _ = program.end()
        assert code == 0, program.log_text[-4000:]

"""A cluster with volumes, recorded and played again."""

import io
from datetime import UTC, datetime, timedelta

from reconciler.loops.reporters.demand_recorder import DemandRecorder
from reconciler.model.cluster import Owner
from reconciler.model.demand import ClaimDemand, ClaimTemplate, ControllerDemand, PodVolumes
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.records.demand import Anonymiser, encode_line, folded, read_demand
from reconciler.simulation.chances import Chances
from reconciler.simulation.process import Process
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import ZONE, idle, make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPTIONS = Options(days=0.02, chances=Chances(interruptions_per_hour=0, capacity_errors_per_day=0))
A, B = "us-west-2a", "us-west-2b"
SETTINGS = make_settings(
    make_fleet_settings(zone=A, spot=False, price="0.10", scale_in=idle(300)),
    make_fleet_settings(zone=B, spot=False, price="0.11", scale_in=idle(300)),
    search_budget_seconds=0.0,
)


class Log:
    """Keeps what was recorded."""

    def __init__(self) -> None:
        self.lines = b""

    def append(self, at: datetime, lines: bytes) -> bool:
        self.lines += lines
        return True


def zones(simulation: Simulation) -> dict[int, str]:
    """The zone of each replica, which are distinguished by what they ask for."""
    nodes = {node.name: node.labels[ZONE] for node in simulation.world.nodes()}
    return {
        pod.spec.requests["cpu"]: nodes[pod.node_name]
        for pod in simulation.world.pods()
        if pod.node_name is not None
    }


def test_recording_of_a_running_cluster_replays_with_its_volumes_where_they_are() -> None:
    """The cheaper zone would have got all pods, and the data of two is in the other one."""
    lines = [
        ClaimDemand(at=AT, id=f"data-db{n}-0", zone=zone) for n, zone in enumerate((B, A, B))
    ] + [
        ControllerDemand(
            at=AT, controller=Owner(kind="StatefulSet", name=f"db{n}"), replicas=1,
            spec=make_spec(f"{1000 + n}m", "1Gi"), claim_templates=(ClaimTemplate(name="data"),),
            volumes=PodVolumes(ephemeral=("cache",)),
        )
        for n in range(3)
    ]  # fmt: skip
    recorded = Simulation(folded(lines), SETTINGS, OPTIONS)
    log = Log()
    recorder = DemandRecorder(log, 86_400.0, lambda _: None)
    begin = AT + timedelta(minutes=10)

    def note(snapshot: Snapshot, plan: Plan) -> None:
        if snapshot.at >= begin:
            recorder.plan_made(snapshot, plan)

    assert isinstance(recorded.process, Process)
    recorded.process.plan_hooks.append(note)
    recorded.run()
    assert zones(recorded) == {1000: B, 1001: A, 1002: B}
    demand = read_demand(io.BytesIO(log.lines), "recorded")
    names = Anonymiser()
    told = b"".join(encode_line(names.line(line)) for line in demand.lines)
    for found in (demand, read_demand(io.BytesIO(told), "anonymous")):
        replayed = Simulation(found, SETTINGS, OPTIONS)
        replayed.run()
        assert zones(replayed) == zones(recorded)

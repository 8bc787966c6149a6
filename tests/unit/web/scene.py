"""A status board with its server, asked over real HTTP."""

from collections.abc import Iterable, Mapping
from http.client import HTTPConnection
from types import TracebackType
from typing import Any, Self

from reconciler.adapters.memory import ManualClock
from reconciler.gitops.drift.live import LiveDrift
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Node, Pod
from reconciler.model.errors import PortError, ReconcilerError
from reconciler.model.ids import FleetId, FleetKey, NodeName, PodKey, Region
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import (
    Cost,
    FleetPlan,
    FleetUpdate,
    HeadroomPlan,
    Placement,
    Plan,
    StandIns,
)
from reconciler.model.snapshot import CloudState, ClusterState, Snapshot
from reconciler.model.unplaceable import Reason, ReasonKind, Unplaceable
from reconciler.ports.changes import HandledChanges
from reconciler.web.access import NO_RULES, AccessRules
from reconciler.web.board import StatusBoard
from reconciler.web.metrics import Metrics
from reconciler.web.routes import Routes
from reconciler.web.server import WebServer
from reconciler.web.view import ALONE, ConfigInForce
from tests.builders import HOME

MISSING = LiveDrift(fleet="primary-small", region=HOME, kind="fleet-missing", detail="not in EC2")
UPDATE = FleetUpdate(
    fleet="primary-small",
    region=HOME,
    version="8",
    state="halted",
    because="it never joined",
    old=3,
    new=0,
)
STAND_INS = StandIns(
    fleet="primary-steady",
    region=HOME,
    instead_of="primary-small",
    nodes=2,
    extra_hourly_usd=0.4,
)
HEADROOM = HeadroomPlan(sector="web", asked="2 nodes", pieces=2, missing=1, because="no money")
COST = Cost(hourly_usd_before=0.5, hourly_usd_after=1.25, hourly_usd_lower_bound=1.0, gap=0.2)


class Scene:
    """Everything that `run` puts behind its port, without the loop."""

    def __init__(self, access: AccessRules = NO_RULES) -> None:
        self.clock = ManualClock()
        self.synced = True
        self.leads = ALONE
        self.board = StatusBoard(self.clock, "1.2.3", lambda: self.synced, lambda: self.leads)
        self.metrics = Metrics(self.board, self.clock, "1.2.3")
        config = ConfigInForce(file="sectors.yaml", cluster="analytics", regions=(HOME,))
        self.board.config_loaded(config)
        self.server = WebServer("127.0.0.1:0", Routes(self.board, self.metrics, access))

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.server.stop()

    @property
    def port(self) -> int:
        return int(self.server.address.rpartition(":")[2])

    def ask(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, Mapping[str, str], str]:
        """Status, headers and body of one request; `_` in a header's name stands for `-`."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=named)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read().decode()
        finally:
            connection.close()

    def cycle(
        self,
        *outcomes: Outcome,
        pods: tuple[Pod, ...] = (),
        nodes: tuple[Node, ...] = (),
        cloud: CloudState | None = None,
        error: ReconcilerError | None = None,
        unkept: PortError | None = None,
        gathered_seconds: float = 0.0,
        handled: tuple[HandledChanges, ...] = (),
        **plan: Any,
    ) -> None:
        """One cycle as the loop reports it."""
        if error is not None:
            self._ended(CycleReport(number=1, error=error))
            return
        now = self.clock.now()
        given: dict[str, Any] = {"fleet_of_node": brought(nodes, plan.get("fleets", ()))}
        plan = {"cost": COST} | given | plan
        made = Plan(at=now, cluster="analytics", home_region=HOME, **plan)
        seen = ClusterState(pods=pods, nodes=nodes)
        snapshot = Snapshot(at=now, cluster=seen, cloud=cloud)
        for reporter in (self.board, self.metrics):
            reporter.plan_made(snapshot, made)
        for outcome in outcomes:
            self.board.action_ended(outcome)
            self.metrics.action_ended(outcome)
        report = CycleReport(
            number=1,
            snapshot=snapshot,
            plan=made,
            outcomes=outcomes,
            unkept=unkept,
            gathered_seconds=gathered_seconds,
            handled=handled,
            plan_seconds=0.04,
        )
        self._ended(report)

    def _ended(self, report: CycleReport) -> None:
        self.board.cycle_ended(report)
        self.metrics.cycle_ended(report)

    def metric(self, sample: str) -> float | None:
        """The value of one sample by its whole name with labels; None when it is not there."""
        _, _, text = self.ask("/metrics")
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        return None


def brought(nodes: Iterable[Node], fleets: Iterable[FleetPlan]) -> dict[NodeName, FleetKey]:
    """The fleet of each node, by its label."""
    keys = {
        fleet_plan.fleet: FleetKey(name=fleet_plan.fleet, region=fleet_plan.region)
        for fleet_plan in fleets
    }
    named = {node.name: node.labels.get("fleet", "") for node in nodes}
    return {name: keys[label] for name, label in named.items() if label in keys}


def raised(kind: OutcomeKind = "applied", region: Region = HOME) -> Outcome:
    """The end of a scale-up."""
    action = SetCapacity(
        fleet="primary-small",
        provider="ec2-fleet",
        id=FleetId("fleet-1"),
        region=region,
        from_capacity=2,
        to_capacity=5,
        policy="scale-up",
        because="3 pending pods need 3 more nodes",
    )
    return Outcome(action=action, kind=kind)


def fleet(**changed: Any) -> FleetPlan:
    """A fleet's numbers."""
    values: dict[str, Any] = {
        "fleet": "primary-small",
        "region": HOME,
        "current": 2,
        "joined": 2,
        "launching": 0,
        "target": 5,
        "min": 0,
        "max": None,
        "state": "active",
    }
    return FleetPlan(**{**values, **changed})


def unplaced(name: str, *codes: str, detail: str = "too big", kind: ReasonKind = "") -> Unplaceable:
    """A pod that nothing can take."""
    reasons = tuple(
        Reason(fleet="primary-small", region=HOME, code=code, detail=detail, kind=kind)
        for code in codes
    )
    return Unplaceable(pod=PodKey(namespace="ns", name=name, uid=name), reasons=reasons)


def bought(pod: Pod) -> Placement:
    """A place on a node to be bought."""
    return Placement(pod=pod.key, fleet="primary-small", region=HOME, new_node=0)

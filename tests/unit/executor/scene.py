"""A small world, and the executor that acts on it."""

from reconciler.adapters.memory import Delays, FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.model.actions import (
    DRAINING_TAINT,
    AnyAction,
    SetCapacity,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import FleetId
from reconciler.model.outcome import Outcome
from tests.builders import HOME, amounts

TAINT = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")
READS = {"fleet", "instances", "counted_pods_on", "nodes", "observe_cloud", "observe_cluster"}


class Scene:
    """A world with one fleet of three joined nodes, and an executor on it."""

    def __init__(self) -> None:
        delays = Delays(modify=0, launch=1, join=1, terminate=1, node_gone=1, pod_stop=1)
        self.world = MemoryWorld(delays=delays)
        shape = FleetShape(
            name="primary-small", region=HOME, allocatable=amounts(cpu=4, memory="16Gi", pods=20)
        )
        self.fleet = self.world.add_fleet(shape, target=3)
        self.world.advance(5)
        self.world.calls.clear()
        ports = Ports(
            cluster=MemoryCluster(self.world), clouds={"ec2-fleet": MemoryCloud(self.world)}
        )
        self.stopping = False
        self.executor = LiveExecutor(
            ports, self.world.clock.monotonic_seconds, lambda: self.stopping
        )
        self.reported: list[Outcome] = []

    @property
    def nodes(self) -> list[Node]:
        return self.world.nodes()

    def run(self, *actions: AnyAction) -> list[str]:
        """The kinds of the outcomes."""
        return [outcome.kind for outcome in self.executor.execute(actions, self.reported.append)]

    def changes(self) -> list[tuple[str, str]]:
        """Calls that change something, in order."""
        return [(c.operation, c.subject) for c in self.world.calls if c.operation not in READS]

    def raised(self, to: int, fleet: FleetId | None = None, before: int = 3) -> SetCapacity:
        return SetCapacity(
            fleet="primary-small" if fleet is None else fleet,
            provider="ec2-fleet",
            id=fleet or self.fleet,
            region=HOME,
            from_capacity=before,
            to_capacity=to,
            policy="scale-up",
            because="test",
        )

    def tainted(self, number: int = 0) -> TaintNode:
        return TaintNode(
            node=self.nodes[number].name, taint=TAINT, policy="scale-in", because="test"
        )

    def ended(self, number: int = 0, *, decrement: bool = True) -> TerminateInstance:
        node = self.nodes[number]
        assert node.instance_id is not None
        return TerminateInstance(
            instance=node.instance_id,
            node=node.name,
            fleet="primary-small",
            fleet_id=self.fleet,
            provider="ec2-fleet",
            region=HOME,
            decrement=decrement,
            precondition="empty",
            policy="scale-in",
            because="test",
        )

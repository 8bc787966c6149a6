"""A board on a bad day: as many nodes, pods and workloads as the page has to bear."""

from datetime import timedelta

from reconciler.gitops.drift.live import LiveDrift
from reconciler.gitops.repository.status import ClusterProgress
from reconciler.model.actions import SetCapacity, TerminateInstance
from reconciler.model.cluster import Node, Owner, Pod
from reconciler.model.errors import Unavailable
from reconciler.model.ids import FleetId, InstanceId, NodeName
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Cost, FleetPlan, FleetUpdate, Held, Kept, Placement
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.unplaceable import Reason, Unplaceable
from tests.builders import HOME, amounts, make_node, make_pod, make_spec
from tests.unit.web.scene import Scene

SECTORS = ("web", "batch", "gpu", "primary")
SIZES = ("small", "medium", "large")
FLEETS = tuple(f"{sector}-{size}" for sector in SECTORS for size in SIZES)
PRICES = {"small": 0.096, "medium": 0.192, "large": 0.768}
KINDS = ("Deployment", "StatefulSet", "Job", "CronJob")
KEPT = (
    ("idle-time", "empty for 3m, 7m to go"),
    ("no-destination", "web/api-1 (2 CPU, 4Gi) fits on no other node"),
    ("budget", "PodDisruptionBudget web/api allows no disruption now"),
)


def nodes_and_pods(nodes: int) -> tuple[tuple[Node, ...], tuple[Pod, ...]]:
    """Nodes with three running pods each, over all fleets."""
    made = tuple(
        make_node(
            f"ip-10-0-{number // 250}-{number % 250}.us-west-2.compute.internal",
            labels={"fleet": FLEETS[number % len(FLEETS)]},
            allocatable=amounts(cpu="7910m", memory="28Gi", pods=58),
        )
        for number in range(nodes)
    )
    spec = make_spec(cpu="900m", memory="2Gi")
    running = tuple(
        make_pod(f"run-{n}-{m}", node=node.name, spec=spec)
        for n, node in enumerate(made)
        for m in range(3)
        if n % 10
    )
    return made, running


def waiting(pods: int, workloads: int, scene: Scene) -> tuple[Pod, ...]:
    """Pending pods of some workloads, evenly."""
    now, spec = scene.clock.now(), make_spec(cpu="4", memory="16Gi", sector="web")
    return tuple(
        make_pod(
            f"job-{n % workloads}-{n}",
            namespace=("web", "data", "ml-training")[n % 3],
            spec=spec,
            owner=Owner(kind=KINDS[n % workloads % 4], name=f"worker-{n % workloads}", uid="u"),
            created_at=now - timedelta(seconds=40 + n % 3000),
        )
        for n in range(pods)
    )


def busy_day(
    scene: Scene, *, nodes: int = 1000, pods: int = 10_000, workloads: int = 60, hours: float = 24
) -> None:
    """Cycles over some hours that leave every section of the page something to show."""
    there, running = nodes_and_pods(nodes)
    pending = waiting(pods, workloads, scene)
    minutes = int(hours * 60)
    for minute in range(minutes):
        share = (1 + minute * 7 // minutes % 3) / 3
        scene.cycle(
            raised_to("web-small", 3 + minute % 5),
            fleets=fleets(int(nodes * share)),
            placements=placed(pending[: int(pods / 40 * share)]),
            cost=cost(int(nodes * share)),
        )
        scene.clock.advance(60)
    scene.cycle(error=Unavailable("describe_fleets us-west-2", "ReadTimeoutError: no answer"))
    scene.board.drift_found(
        (LiveDrift(fleet="gpu-large", region=HOME, kind="types-differ", detail="g5.xlarge"),)
    )
    scene.board.second_loop_ended(
        "at 4f2c1e9: committed",
        (
            ClusterProgress(
                config="analytics/sectors.yaml",
                cluster="analytics",
                stage="planned",
                detail="waits for its approval",
            ),
        ),
    )
    last_cycle(scene, there, running, pending)


def last_cycle(
    scene: Scene, there: tuple[Node, ...], running: tuple[Pod, ...], pending: tuple[Pod, ...]
) -> None:
    """What the page shows."""
    third = len(pending) // 3
    scene.cycle(
        raised_to("web-small", 40),
        ended(there[0].name),
        denied("web-medium"),
        pods=(*running, *pending),
        nodes=there,
        fleets=fleets(len(there)),
        placements=placed(pending[:third]),
        unplaceable=tuple(refused(pod, n) for n, pod in enumerate(pending[third:])),
        kept=tuple(
            Kept(node=node.name, code=KEPT[n % 3][0], detail=KEPT[n % 3][1])
            for n, node in enumerate(there)
            if n % 10 == 0
        ),
        held=(Held(node=there[1].name, code="safety-stop"),),
        cost=cost(len(there)),
        fleet_states=(
            SavedFleetState(
                fleet="gpu-large",
                region=HOME,
                failures=2,
                reason="InsufficientInstanceCapacity",
                unavailable_until=scene.clock.now() + timedelta(minutes=7),
            ),
        ),
    )


def fleets(nodes: int) -> tuple[FleetPlan, ...]:
    """All fleets; one cools off, one is updated."""
    each = nodes // len(FLEETS)
    return tuple(
        FleetPlan(
            fleet=name,
            region=HOME,
            current=each + 2,
            joined=each,
            launching=2 if number % 3 == 0 else 0,
            target=each + (9 if name == "web-medium" else 2),
            min=0,
            max=200 if number % 2 else None,
            state="active",
            unavailable="InsufficientInstanceCapacity; cooling off until 12:07:00"
            if name == "gpu-large"
            else "",
            update=FleetUpdate(
                fleet=name,
                region=HOME,
                version="8",
                state="rolling",
                because="2 nodes of the batch are still drained",
                old=each // 2,
                new=each // 2,
            )
            if name == "batch-small"
            else None,
            node_usd_per_hour=PRICES[name.rpartition("-")[2]],
        )
        for number, name in enumerate(FLEETS)
    )


def cost(nodes: int) -> Cost:
    """Near its bound."""
    spent = nodes * 0.35
    return Cost(
        hourly_usd_before=spent,
        hourly_usd_after=spent * 1.02,
        hourly_usd_lower_bound=spent * 0.97,
        gap=0.05,
    )


def placed(pods: tuple[Pod, ...]) -> tuple[Placement, ...]:
    """Places on new, launching and existing nodes."""
    return tuple(
        Placement(pod=pod.key, fleet="web-medium", region=HOME, new_node=n // 8)
        if n % 3
        else Placement(pod=pod.key, fleet="web-small", region=HOME, launching=n // 8)
        for n, pod in enumerate(pods)
    )


def refused(pod: Pod, number: int) -> Unplaceable:
    """A pod that no fleet takes."""
    full = ("max-capacity", "the fleet is at its max_capacity of 200")
    large = ("insufficient-memory", "requests 300Gi, a new node offers 28Gi")
    code, detail = large if number % 60 < 20 else full
    reasons = tuple(
        Reason(fleet=f"web-{size}", region=HOME, code=code, detail=detail) for size in SIZES
    )
    return Unplaceable(pod=pod.key, reasons=reasons)


def raised_to(fleet: str, to: int) -> Outcome:
    """A raise that EC2 accepted."""
    action = SetCapacity(
        fleet=fleet,
        provider="ec2-fleet",
        id=FleetId(f"fleet-{fleet}"),
        region=HOME,
        from_capacity=2,
        to_capacity=to,
        policy="scale-up",
        because=f"{to * 8} pending pods need {to - 2} more nodes",
    )
    return Outcome(action=action, kind="applied")


def denied(fleet: str) -> Outcome:
    """A raise that EC2 denied."""
    return Outcome(
        action=raised_to(fleet, 90).action,
        kind="failed",
        error="Forbidden",
        detail=f"fleet fleet-{fleet}: UnauthorizedOperation: You are not authorized to perform "
        "this operation. User: arn:aws:sts::123456789012:assumed-role/reconciler is not authorized "
        "to perform: ec2:ModifyFleet",
    )


def ended(node: NodeName) -> Outcome:
    """An empty node that was ended."""
    action = TerminateInstance(
        instance=InstanceId("i-0123456789abcdef0"),
        node=node,
        fleet="batch-large",
        fleet_id=FleetId("fleet-batch-large"),
        provider="ec2-fleet",
        region=HOME,
        decrement=True,
        precondition="empty",
        policy="scale-in",
        because="empty for 10m",
    )
    return Outcome(action=action, kind="applied")

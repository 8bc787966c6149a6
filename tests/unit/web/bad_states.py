"""The states that an on-call engineer meets, and what must be said of each first."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from reconciler.model.errors import (
    ConfigError,
    Forbidden,
    ObservationError,
    Problem,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import NodeName, Region
from reconciler.model.plan import Held, HeldCode, Plan
from reconciler.model.snapshot import CloudState, ClusterState, Ignored, Snapshot
from reconciler.web.view import LeadershipView
from tests.builders import HOME
from tests.unit.web.scene import COST, UPDATE, Scene, fleet, raised, unplaced

DENIED = replace(
    raised("failed"), detail="fleet fleet-1: UnauthorizedOperation: no", error="Forbidden"
)
NONE_LEFT = replace(
    raised("failed"), detail="fleet fleet-1: UnfulfillableCapacity", error="InsufficientCapacity"
)
THROTTLED = replace(
    raised("refused"), detail="fleet fleet-1: RequestLimitExceeded", error="Throttled"
)
COOLING = "InsufficientInstanceCapacity; cooling off until 12:05:00"
BUG = "KeyError: 'x', at disruption/idle.py:49 (please report it with a snapshot)"


def ec2_denied(scene: Scene) -> None:
    """A raise that IAM does not allow."""
    scene.cycle(DENIED, fleets=(fleet(),))


def raises_throttled(scene: Scene) -> None:
    """Another tool of the account uses up the limit of ModifyFleet."""
    for _ in range(4):
        scene.cycle(THROTTLED, fleets=(fleet(),))
        scene.clock.advance(60)


def ec2_denied_from_the_start(scene: Scene) -> None:
    """A role that may not even look."""
    scene.cycle(error=Forbidden("describe_fleets", "UnauthorizedOperation: no"))


def ec2_silent(scene: Scene) -> None:
    """No answer from the only region."""
    scene.cycle(error=Unavailable("describe_fleets", "ReadTimeoutError: no answer"))


def ec2_throttles(scene: Scene) -> None:
    """Answers, but no content."""
    scene.cycle(error=Throttled("describe_fleets", "RequestLimitExceeded"))


def region_silent(scene: Scene) -> None:
    """One of two regions is away."""
    _silent_in_a_region(scene, "Unavailable: us-east-1: did not answer within 10 s")


def region_denied(scene: Scene) -> None:
    """A service control policy keeps the role out of one of two regions."""
    _silent_in_a_region(scene, "Forbidden: describe_fleets: UnauthorizedOperation: no")


def _silent_in_a_region(scene: Scene, why: str) -> None:
    away = Region("us-east-1")
    told = Ignored(code="unreadable", kind="Region", name=away, detail=why)
    cloud = CloudState(regions=frozenset({HOME}), silent=frozenset({away}), ignored=(told,))
    at = scene.clock.now()
    plan = Plan(at=at, cluster="analytics", home_region=HOME, cost=COST)
    scene.board.plan_made(Snapshot(at=at, cluster=ClusterState(), cloud=cloud), plan)


def api_server_down(scene: Scene) -> None:
    """Caches that are too old to decide from."""
    scene.cycle()
    scene.cycle(error=ObservationError("https://10.0.0.1", "no answer about any kind for 61 s"))


def api_server_down_for_minutes(scene: Scene) -> None:
    """403 s, which are no answer 403."""
    scene.cycle(error=ObservationError("https://10.0.0.1", "no answer about any kind for 403 s"))


def api_server_denies(scene: Scene) -> None:
    """A ClusterRole without a right."""
    why = "no answer about Pod for 61 s (GET /api/v1/pods: 403 pods is forbidden)"
    scene.cycle(error=ObservationError("https://10.0.0.1", why))


def config_refused(scene: Scene) -> None:
    """A typo was pushed."""
    scene.cycle()
    problem = Problem(
        line=3, column=5, path="regions", code="config/type", message="5 is not a list"
    )
    scene.board.config_refused(ConfigError("sectors.yaml", (problem,)))


def branch_unreadable(scene: Scene) -> None:
    """A token of the config repository has expired."""
    scene.cycle()
    for _ in range(2):
        scene.board.second_loop_ended("failed: https://git.example.com/x: 401", failed=True)
        scene.clock.advance(700)
    scene.cycle()


def queue_denied(scene: Scene) -> None:
    """The role may not read the queue of interruptions."""
    scene.cycle()
    scene.board.queue_troubled(Forbidden("ReceiveMessage", "AccessDenied: no sqs:ReceiveMessage"))


def lease_lost(scene: Scene) -> None:
    """It led, and another replica has the Lease now."""
    scene.leads = LeadershipView(enabled=True, leads=True, holder="pod-1")
    scene.board.lead_gained()
    scene.cycle()
    scene.leads = LeadershipView(enabled=True, leads=False, holder="pod-2")


def not_the_leader(scene: Scene) -> None:
    """A healthy standby."""
    scene.leads = LeadershipView(enabled=True, leads=False, holder="pod-2")
    scene.cycle(unplaceable=(unplaced("a", "max-cost"),))


def no_capacity(scene: Scene) -> None:
    """The only fleet cools off and a pod waits for it."""
    scene.cycle(
        fleets=(fleet(unavailable=COOLING),),
        unplaceable=(unplaced("a", "fleet-unavailable", detail=COOLING, kind="capacity"),),
    )


def fleet_missing(scene: Scene) -> None:
    """The config has the only fleet, EC2 does not; another pod asks for too much anyway."""
    scene.cycle(
        fleets=(fleet(state="missing", unavailable="the fleet is missing"),),
        unplaceable=(
            unplaced("a", "fleet-unavailable", detail="the fleet is missing", kind="missing"),
            unplaced("b", "insufficient-cpu"),
        ),
    )


def ec2_refuses_for_want_of_capacity(scene: Scene) -> None:
    """A limit of vCPUs."""
    scene.cycle(NONE_LEFT, fleets=(fleet(),))


def budget_too_tight(scene: Scene) -> None:
    """Money is out."""
    scene.cycle(unplaceable=(unplaced("a", "max-cost", detail="would exceed max_hourly_usd"),))


def planning_of_removals_fails(scene: Scene) -> None:
    """A bug: interrupted nodes end with their pods."""
    scene.cycle(no_removals_because=f"planning what may go fails: {BUG}")


def planning_of_pods_fails(scene: Scene) -> None:
    """The same with one tenant's pods."""
    why = f"is of a namespace on whose pods planning fails: {BUG}"
    scene.cycle(unplaceable=(unplaced("a", "planning-failed", detail=why),))


def update_halted(scene: Scene) -> None:
    """A launch template whose nodes never join."""
    scene.cycle(fleets=(fleet(update=UPDATE),))


def update_rests(scene: Scene) -> None:
    """A webhook that lets no pod of its old nodes be evicted."""
    rests = replace(UPDATE, state="resting", because="it rests until 2026-01-31T13:00:00Z: …")
    scene.cycle(fleets=(fleet(update=rests),))


def nodes_held(scene: Scene) -> None:
    """A plan that would end half of the cluster."""
    scene.cycle(held=tuple(held(f"n-{number}", "safety-stop") for number in range(5)))


def instance_held(scene: Scene) -> None:
    """Somebody protected an instance that never joined."""
    one = Held(node=NodeName(""), instance="i-1", code="termination-protected")
    scene.cycle(held=(one,))


def held(name: str, code: HeldCode) -> Held:
    """A node that would go."""
    return Held(node=NodeName(name), code=code)


def new_nodes_not_emptied(scene: Scene) -> None:
    """A taint that the config does not know."""
    why = "2 times nodes of primary-small joined for such pods and none of them bound"
    scene.cycle(quarantined=1, unplaceable=(unplaced("a", "no-progress", detail=why),))


def below_the_minimum(scene: Scene) -> None:
    """A fleet that EC2 gives nothing, which no pod waits for."""
    scene.cycle(
        fleets=(fleet(joined=1, current=4, launching=3, target=4, min=4, unavailable=COOLING),)
    )


def minimum_of_a_missing_fleet(scene: Scene) -> None:
    """Somebody deleted the fleet; its nodes run on, and no pod waits for it."""
    gone = fleet(state="missing", joined=3, min=1, unavailable="the fleet is missing")
    scene.cycle(fleets=(gone,))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One of them."""

    make: Callable[[Scene], None]
    level: str
    headline: str
    cause: str
    """Part of the cause that is shown."""

    @property
    def name(self) -> str:
        """For test ids and pictures."""
        return self.make.__name__.replace("_", "-")


STATES = tuple(
    State(make=make, level=level, headline=headline, cause=cause)
    for make, level, headline, cause in (
        (ec2_denied, "degraded", "EC2 denies ModifyFleet", "UnauthorizedOperation: no"),
        (
            ec2_denied_from_the_start,
            "failing",
            "EC2 denies DescribeFleets",
            "UnauthorizedOperation",
        ),
        (
            raises_throttled,
            "degraded",
            "set-capacity is throttled",
            "primary-small in us-west-2: fleet fleet-1: RequestLimitExceeded; each of 4 tries in 3",
        ),
        (ec2_silent, "failing", "EC2 does not answer", "ReadTimeoutError"),
        (ec2_throttles, "failing", "EC2 does not answer", "RequestLimitExceeded"),
        (region_silent, "degraded", "EC2 does not answer in us-east-1", "not answer within 10 s"),
        (
            region_denied,
            "degraded",
            "EC2 denies calls in us-east-1",
            "UnauthorizedOperation: no",
        ),
        (api_server_down, "failing", "API server unreachable", "for 61 s"),
        (
            api_server_down_for_minutes,
            "failing",
            "API server unreachable",
            "for 403 s",
        ),
        (api_server_denies, "failing", "API server denies lists", "403 pods is forbidden"),
        (config_refused, "degraded", "Config refused", "3:5: config/type: 5 is not a list"),
        (
            branch_unreadable,
            "degraded",
            "Second loop fails",
            "for 23m20s: https://git.example.com/x: 401",
        ),
        (
            queue_denied,
            "degraded",
            "Interruption queue fails",
            "ReceiveMessage: AccessDenied: no sqs:ReceiveMessage",
        ),
        (lease_lost, "degraded", "Lease lost", "current leader: pod-2"),
        (not_the_leader, "standby", "Not the leader", "current leader: pod-2"),
        (no_capacity, "limited", "No capacity for 1 pod", f"primary-small: {COOLING}"),
        (
            fleet_missing,
            "limited",
            "No fleet can run 1 pod",
            "EC2 does not have primary-small in us-west-2",
        ),
        (
            ec2_refuses_for_want_of_capacity,
            "degraded",
            "EC2 has no capacity",
            "UnfulfillableCapacity",
        ),
        (budget_too_tight, "limited", "Budget too tight for 1 pod", "would exceed max_hourly_usd"),
        (planning_of_removals_fails, "degraded", "No node is drained or ended", BUG),
        (
            planning_of_pods_fails,
            "degraded",
            "Planning fails on 1 pod",
            f"ns/a is of a namespace on whose pods planning fails: {BUG}",
        ),
        (
            update_halted,
            "degraded",
            "Rolling update of primary-small in us-west-2 is halted",
            "launch template version 8: it never joined",
        ),
        (
            update_rests,
            "limited",
            "Rolling update of primary-small in us-west-2 rests",
            "launch template version 8: it rests until 2026-01-31T13:00:00Z",
        ),
        (
            nodes_held,
            "limited",
            "5 nodes are held (safety-stop)",
            "n-0, n-1, n-2 (and 2 more): each would go, but the plan would remove so many nodes",
        ),
        (
            instance_held,
            "limited",
            "1 node is held (termination-protected)",
            "instance i-1: it would go, but it never became a node, and EC2 refuses to end it",
        ),
        (
            new_nodes_not_emptied,
            "limited",
            "New nodes do not help 1 kind of pods",
            "ns/a: 2 times nodes of primary-small joined",
        ),
        (
            below_the_minimum,
            "limited",
            "3 nodes of min_capacity do not come",
            f"primary-small in us-west-2: {COOLING}",
        ),
        (
            minimum_of_a_missing_fleet,
            "limited",
            "1 fleet with min_capacity is missing",
            "EC2 does not have primary-small in us-west-2 (min_capacity 1)",
        ),
    )
)

"""What holds for every cluster that scales in, cycle after cycle until nothing moves any more."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    DRAIN_PROGRESS,
    UNNEEDED_SINCE,
    AnnotateNode,
    AnyAction,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
    begins_drain,
)
from reconciler.model.cluster import Node, Pod, PodDisruptionBudget
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    ago,
    is_tainted,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    selecting,
)

KINDS: dict[str, dict[str, Any]] = {
    "web": {"labels": {"app": "web"}, "ready": True},
    "plain": {},
    "slow": {"termination_grace_seconds": 300},
    "job": {"owner": "Job"},
    "step": {"owner": "Workflow", "ends_by_itself": True},
    "bare": {"owner": None},
    "disk": {"local_storage": True},
    "system": {"namespace": "kube-system"},
    "kept": {"annotations": FrozenMap({DO_NOT_DISRUPT: "true"})},
    "twice": {"labels": {"app": "web", "tier": "twice"}},
    "daemon": {"owner": "DaemonSet"},
    "balloon": {"priority": -5},
}
QUIET_CYCLES = 16
"""Minutes without an action after which no timer can be running any more."""
MIX = ("plain",) * 30 + ("web",) * 15 + tuple(sorted(KINDS))
"""Most pods may be moved, or hardly any node could be emptied."""
IMMOVABLE = frozenset({"slow", "job", "step", "bare", "disk", "system", "kept", "twice"})


@dataclass(frozen=True)
class World:
    """A cluster and its settings; pods are named after their kind."""

    snapshot: Snapshot
    settings: PlannerSettings


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Up to seven 4-CPU nodes, each with up to four pods of all kinds; two budgets."""
    scale_in = ScaleInSettings(
        idle_threshold_seconds=60,
        unneeded_seconds=draw(st.sampled_from([0, 60, 600])),
        utilization_threshold=draw(st.sampled_from([0.3, 0.5, 0.9])),
        non_empty_at_once_max=draw(st.integers(1, 3)),
    )
    minimum = draw(st.integers(0, 2))
    fleets = [
        make_fleet_settings(scale_in=scale_in, min_capacity=minimum),
        make_fleet_settings("large", cpu=8, price="0.25", scale_in=scale_in),
    ]
    objects: list[Node | Pod] = []
    for number in range(draw(st.integers(1, 7))):
        name = f"n{number}"
        marks = {UNNEEDED_SINCE: "2026-01-31T11:00:00Z"} if draw(st.booleans()) else {}
        fleet = draw(st.sampled_from(fleets))
        objects.append(make_node(name, fleet, annotations=FrozenMap(marks)))
        for index, kind in enumerate(draw(st.lists(st.sampled_from(MIX), max_size=4))):
            cpu = draw(st.sampled_from(["100m", "500m", "900m"]))
            deleting = draw(st.integers(0, 9)) == 0
            changed: dict[str, Any] = {
                "node": name,
                "cpu": cpu,
                "memory": "64Mi",
                "deleting": deleting,
            }
            objects.append(make_pod(f"{kind}-{number}-{index}", **changed, **KINDS[kind]))
    budgets = (
        budget("web", draw(st.integers(0, 2)), app="web"),
        budget("twice", 5, tier="twice"),
    )
    nodes = [o for o in objects if isinstance(o, Node)]
    lives = [make_fleet(f, sum(n.labels["fleet"] == f.name for n in nodes)) for f in fleets]
    cloud = make_cloud_of(nodes, *lives)
    consolidation = draw(st.booleans())
    return World(
        snapshot=make_snapshot(*objects, cloud=cloud, budgets=budgets, relists=2),
        settings=make_settings(*fleets, consolidation=consolidation),
    )


def budget(name: str, allowed: int, **labels: str) -> PodDisruptionBudget:
    """A budget of namespace ns."""
    return PodDisruptionBudget(
        namespace="ns", name=name, selector=selecting(**labels), disruptions_allowed=allowed
    )


def kind_of(name: str) -> str:
    """The kind that a pod's name tells."""
    return name.partition("-")[0]


def faults(world: World, made: Plan) -> list[str]:
    """Every way in which the plan breaks a promise."""
    cluster = world.snapshot.cluster
    pods = {p.key: p for p in cluster.pods}
    evicted = [a.pod for a in made.actions if isinstance(a, EvictPod)]
    found = [f"{p} is protected" for p in evicted if kind_of(p.name) in IMMOVABLE]
    found += [f"{p} is evicted twice" for p, n in Counter(evicted).items() if n > 1]
    found += [f"{p} is being deleted already" for p in evicted if pods[p].deleting]
    found += [f"{a.pod} is deleted" for a in made.actions if isinstance(a, DeletePod)]
    webs = sum(kind_of(p.name) == "web" for p in evicted)
    if webs > next(b.disruptions_allowed for b in cluster.budgets if b.name == "web"):
        found.append(f"{webs} web pods are more than the budget allows")
    places = {p.pod: p.node for p in made.placements if p.moved_from}
    if set(evicted) != set(places):
        found.append("evictions and destinations differ")
    going = {a.node for a in made.actions if isinstance(a, TaintNode | TerminateInstance)}
    going |= {n.name for n in cluster.nodes if is_tainted(n)}
    found += [f"{p} is sent to {n}, which leaves" for p, n in places.items() if n in going]
    return [*found, *overfull(world, places), *unemptied(world, made, evicted)]


def overfull(world: World, places: dict[Any, Any]) -> list[str]:
    """Destinations that cannot hold what is sent to them."""
    used: Counter[str] = Counter()
    for pod in world.snapshot.cluster.pods:
        used[str(places.get(pod.key, pod.node_name))] += pod.spec.requests["cpu"]
    return [
        f"{n.name} is overfull"
        for n in world.snapshot.cluster.nodes
        if n.name in places.values() and used[n.name] > n.allocatable["cpu"]
    ]


def unemptied(world: World, made: Plan, evicted: list[Any]) -> list[str]:
    """Nodes that are ended with pods that count, or drained without an end in sight."""
    ended = {a.node for a in made.actions if isinstance(a, TerminateInstance)}
    begun = {a.node for a in made.actions if begins_drain(a)}
    in_rounds = {
        a.node for a in made.actions if isinstance(a, AnnotateNode) and a.key == DRAIN_PROGRESS
    }
    found = []
    for pod in world.snapshot.cluster.pods:
        kind = kind_of(pod.key.name)
        if kind in {"daemon", "balloon"}:
            continue
        if pod.node_name in ended:
            found.append(f"{pod.key} ends with {pod.node_name}")
        later = kind == "web" and pod.node_name in in_rounds
        if pod.node_name in begun and not (pod.deleting or later) and pod.key not in evicted:
            found.append(f"{pod.key} is forgotten on {pod.node_name}")
    found += [
        f"{f.fleet} falls to {f.target}" for f in made.fleets if f.target < min(f.min, f.current)
    ]
    return found


def carried_out(world: World, made: Plan) -> World:
    """The world a minute later: pods where they were sent, nodes gone or marked, targets set."""
    cluster, cloud = world.snapshot.cluster, world.snapshot.cloud
    assert cloud is not None
    ended = {a.node for a in made.actions if isinstance(a, TerminateInstance)}
    places = {p.pod: p.node for p in made.placements if p.moved_from}
    pods = [
        replace(p, node_name=NodeName(places[p.key] or "")) if p.key in places else p
        for p in cluster.pods
        if not p.deleting and p.node_name not in ended
    ]
    nodes = [marked(n, made.actions) for n in cluster.nodes if n.name not in ended]
    targets = {f.fleet: f.target for f in made.fleets}
    fleets = [replace(f, target_capacity=targets[f.name]) for f in cloud.fleets]
    for fleet in fleets:
        own = [n for n in nodes if n.labels["fleet"] == fleet.name]
        of = next(f for f in world.settings.fleets() if f.name == fleet.name)
        stamp = world.snapshot.at.strftime("%H%M")
        nodes += [
            make_node(f"{fleet.name}-{stamp}-{i}", of, created_at=ago(3600))
            for i in range(fleet.target_capacity - len(own))
        ]
    lives = {f.name: f for f in fleets}
    found = [make_instance(n, lives[n.labels["fleet"]]) for n in nodes]
    later: datetime = world.snapshot.at + timedelta(seconds=60)
    snapshot = Snapshot(
        at=later,
        cluster=replace(cluster, pods=tuple(pods), nodes=tuple(nodes)),
        cloud=replace(cloud, fleets=tuple(fleets), instances=tuple(found)),
    )
    return World(snapshot=snapshot, settings=world.settings)


def marked(node: Node, actions: tuple[AnyAction, ...]) -> Node:
    """The node with what the plan's actions put on it or took off it."""
    annotations, taints = dict(node.annotations), list(node.taints)
    for action in actions:
        if isinstance(action, SetCapacity) or action.node != node.name:
            continue
        if isinstance(action, TaintNode):
            taints.append(action.taint)
        elif isinstance(action, UntaintNode):
            taints = [t for t in taints if t.key != action.key]
        elif isinstance(action, AnnotateNode) and action.value is None:
            annotations.pop(action.key, None)
        elif isinstance(action, AnnotateNode):
            annotations[action.key] = action.value or ""
    return replace(node, annotations=FrozenMap(annotations), taints=tuple(taints))


@settings(max_examples=150, deadline=None)
@given(world=worlds())
def test_no_plan_breaks_a_promise_until_nothing_moves_any_more(world: World) -> None:
    """Protected work would be lost, or pods be sent round in circles."""
    moves: Counter[str] = Counter()
    quiet = 0
    for _ in range(80):
        made = plan(world.snapshot, world.settings)
        assert faults(world, made) == []
        moves.update(a.pod.name for a in made.actions if isinstance(a, EvictPod))
        quiet = quiet + 1 if not made.actions else 0
        if quiet == QUIET_CYCLES:
            break
        world = carried_out(world, made)
    assert quiet == QUIET_CYCLES
    most = len(world.snapshot.cluster.nodes) + 7
    assert all(count <= most for count in moves.values())

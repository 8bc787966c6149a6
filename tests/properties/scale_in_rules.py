"""What scale-in must never do, node by node (docs/scale-in.md)."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.model.actions import (
    UNNEEDED_SINCE,
    DeleteNode,
    EvictPod,
    TerminateInstance,
    UntaintNode,
    begins_drain,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings
from tests.builders import is_tainted
from tests.properties.places import FleetFacts, fleet_facts, instances_by_id, is_gone
from tests.properties.strategies import PROTECTIONS


def scale_in_faults(snapshot: Snapshot, settings: PlannerSettings, made: Plan) -> list[str]:
    """Every rule that the plan's voluntary removals break."""
    facts = fleet_facts(snapshot, settings)
    owner = {node.name: fleet for fleet in facts for node in fleet.nodes}
    nodes = {node.name: node for node in snapshot.cluster.nodes}
    ours = [a for a in made.actions if a.policy == "scale-in"]
    tainted = [a.node for a in ours if begins_drain(a)]
    ended = [a.node for a in ours if isinstance(a, TerminateInstance) and a.node]
    moved = {a.pod: a.node for a in ours if isinstance(a, EvictPod)}
    found: list[str] = []
    for name in [*tainted, *ended]:
        found += _node_faults(snapshot, made, nodes[name], owner.get(name))
    for name in tainted:
        found += _drain_faults(snapshot, made, nodes[name], moved)
    for name in ended:
        found += [f"{name}: {p.key} is ended" for p in _counted_on(snapshot, nodes[name])]
    found += [f"{n} ended without a drain" for n in ended if not is_tainted(nodes[n])]
    found += [f"{n} tainted and ended at once" for n in set(tainted) & set(ended)]
    found += [f"{n} is tainted too early" for n in tainted if not _idle_long(snapshot, nodes[n])]
    found += _instance_faults(snapshot, made, nodes)
    if snapshot.cluster.relists < 2 and len(tainted) > 3 and len(tainted) > 0.3 * len(owner):
        found.append(f"{len(tainted)} of {len(owner)} nodes at once")
    return found + list(_minimum_faults(made, facts, [str(n) for n in tainted]))


def _instance_faults(
    snapshot: Snapshot, made: Plan, nodes: Mapping[NodeName, Node]
) -> Iterator[str]:
    """Node objects and instances that are removed for their own state."""
    for action in made.actions:
        if isinstance(action, DeleteNode) and not _is_only_a_name(snapshot, nodes[action.node]):
            yield f"{action.node} deleted, its instance may be running"
        if isinstance(action, TerminateInstance) and action.policy == "stuck-instance":
            node = nodes.get(NodeName(str(action.node)))
            if action.decrement and node is not None and not _was_never_ready(node):
                yield f"{action.instance} is replaced, but the target goes down"
            if node is not None and (node.ready or not _since(snapshot, node, 600)):
                yield f"{node.name} was not unready for ten minutes"


def _was_never_ready(node: Node) -> bool:
    """Not Ready, unchanged since the first two minutes: its target may fall with it."""
    if node.ready or node.created_at is None or node.ready_changed_at is None:
        return False
    return node.ready_changed_at - node.created_at <= timedelta(minutes=2)


def _is_only_a_name(snapshot: Snapshot, node: Node) -> bool:
    """Terminated, or long unready and unknown to an EC2 that answered for its fleet."""
    known = instances_by_id(snapshot)
    if node.instance_id in known:
        return _terminated(snapshot, node)
    fleets = {f.name for f in snapshot.cloud.fleets} if snapshot.cloud else set()
    unready = not node.ready and _since(snapshot, node, 600)
    return bool(known) and unready and node.labels.get("fleet") in fleets


def _since(snapshot: Snapshot, node: Node, seconds: float) -> bool:
    """Whether its Ready condition has been as it is for so long."""
    changed = node.ready_changed_at
    return changed is not None and snapshot.at - changed >= timedelta(seconds=seconds)


def _drain_faults(
    snapshot: Snapshot, made: Plan, node: Node, moved: Mapping[PodKey, NodeName]
) -> Iterator[str]:
    """A drain begins only with a place for every pod, and one non-empty node at a time."""
    counted = _counted_on(snapshot, node)
    reserved = {p.pod for p in made.placements if p.moved_from == node.name}
    for pod in counted:
        if moved.get(pod.key) != node.name or pod.key not in reserved:
            yield f"{node.name}: {pod.key} has no place to go"
        if any(pod.annotations.get(key) == "true" for key in PROTECTIONS):
            yield f"{node.name}: {pod.key} is protected"
    others = {at for at in moved.values() if at != node.name}
    if counted and others:
        yield f"{node.name} and {sorted(others)} are emptied at once"


def _node_faults(
    snapshot: Snapshot, made: Plan, node: Node, fleet: FleetFacts | None
) -> Iterator[str]:
    if fleet is None:
        yield f"{node.name} is not ours"
    if any(p.node == node.name for p in made.placements):
        yield f"{node.name} was promised to a pod"
    if any(node.annotations.get(key) == "true" for key in PROTECTIONS):
        yield f"{node.name} is protected"
    if is_gone(node, snapshot):
        yield f"{node.name} is going anyway"


def _counted_on(snapshot: Snapshot, node: Node) -> list[Pod]:
    return [p for p in snapshot.cluster.pods if p.node_name == node.name and _counts(p)]


def _counts(pod: Pod) -> bool:
    if pod.phase in {"Succeeded", "Failed"} or pod.mirror:
        return False
    daemon = pod.owner is not None and pod.owner.kind == "DaemonSet"
    return not daemon and (pod.unreadable or pod.spec.priority >= 0)


def _terminated(snapshot: Snapshot, node: Node) -> bool:
    if node.instance_id is None:
        return False
    instance = instances_by_id(snapshot).get(node.instance_id)
    return instance is not None and instance.state == "terminated"


def _idle_long(snapshot: Snapshot, node: Node) -> bool:
    """For the default threshold of ten minutes, by annotation or last finished pod."""
    if node.ready_changed_at is None:
        return False
    if UNNEEDED_SINCE in node.annotations:
        since = datetime.fromisoformat(node.annotations[UNNEEDED_SINCE])
    else:
        on_it = [p for p in snapshot.cluster.pods if p.node_name == node.name]
        ends = [p.finished_at for p in on_it if p.finished_at is not None]
        since = max(ends, default=snapshot.at)
    return snapshot.at - max(since, node.ready_changed_at) >= timedelta(seconds=600)


def _minimum_faults(made: Plan, facts: list[FleetFacts], tainted: list[str]) -> Iterator[str]:
    """The minimum is held against the target minus the nodes that will be draining."""
    gone = {a.node for a in made.actions if isinstance(a, TerminateInstance | UntaintNode)}
    for fleet in facts:
        listed = next(f for f in made.fleets if (f.fleet, f.region) == fleet.key)
        drained = {n.name for n in fleet.nodes if is_tainted(n) or n.name in tainted} - gone
        begins = any(n.name in tainted for n in fleet.nodes)
        if begins and listed.target - len(drained) < fleet.min:
            yield f"{fleet.key}: {listed.target} less {len(drained)} is below {fleet.min}"
        if listed.target < min(fleet.min, fleet.current):
            yield f"{fleet.key}: target {listed.target} is below {fleet.min}"

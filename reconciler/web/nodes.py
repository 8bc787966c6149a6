"""Nodes as the page lists them: what is on each and why it is kept."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.explain.answers import NodeVerdict
from reconciler.planner.explain.nodes import NodeVerdicts

_ORDER: Final[tuple[NodeVerdict, ...]] = ("held", "leaves", "kept", "used", "foreign")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node."""

    name: NodeName
    fleet: str
    """Empty for a node that is not from a fleet of ours."""
    created_at: datetime | None
    ready: bool
    verdict: NodeVerdict
    code: str
    because: str
    pods: int
    """Those that count, without DaemonSets' and static pods."""
    cpu_share: float | None
    """Requested share of allocatable, 0 to 1 and over; None when the node offers none."""
    memory_share: float | None


def node_rows(snapshot: Snapshot, plan: Plan) -> tuple[NodeRow, ...]:
    """Return every node: held and leaving ones first, then by fleet and name."""
    verdicts = NodeVerdicts(plan)
    reserved = Counter(
        placement.node
        for placement in plan.placements
        if placement.node and placement.moved_from is None
    )
    pods_on: dict[NodeName, list[Pod]] = {}
    for pod in snapshot.cluster.pods:
        if pod.node_name is not None and not pod.finished:
            pods_on.setdefault(pod.node_name, []).append(pod)
    rows = (
        _row(node, pods_on.get(node.name, ()), plan, verdicts, reserved)
        for node in snapshot.cluster.nodes
    )
    return tuple(sorted(rows, key=lambda row: (_ORDER.index(row.verdict), row.fleet, row.name)))


def _row(
    node: Node,
    pods: Iterable[Pod],
    plan: Plan,
    verdicts: NodeVerdicts,
    reserved: Mapping[NodeName, int],
) -> NodeRow:
    on_it = list(pods)
    busy = counted(on_it)
    key = plan.fleet_of_node.get(node.name)
    verdict, code, because = verdicts.of(node.name) or _default_verdict(
        len(busy), reserved.get(node.name, 0)
    )
    return NodeRow(
        name=node.name,
        fleet="" if key is None else key.name,
        created_at=node.created_at,
        ready=node.ready,
        verdict=verdict,
        code=code,
        because=because,
        pods=len(busy),
        cpu_share=_share(node, on_it, "cpu"),
        memory_share=_share(node, on_it, "memory"),
    )


def _default_verdict(busy: int, reserved: int) -> tuple[NodeVerdict, str, str]:
    """Return the verdict on a node that the plan does not mention."""
    if busy:
        return "used", "has-pods", f"{counted_noun(busy, 'pod')} on it"
    if reserved:
        return "used", "reserved", f"{counted_noun(reserved, 'pending pod')} will run on it"
    return "kept", "not-a-candidate", "no policy removes it"


def _share(node: Node, pods: Iterable[Pod], resource: str) -> float | None:
    offered = node.allocatable.get(resource, 0)
    if not offered:
        return None
    return sum(pod.spec.requests.get(resource, 0) for pod in pods) / offered

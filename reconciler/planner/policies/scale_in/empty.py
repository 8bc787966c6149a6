"""Empty nodes: the timer, the limits, the taint."""

from datetime import timedelta

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    DRAINING_TAINT,
    UNNEEDED_SINCE,
    AnnotateNode,
    TaintNode,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import FleetKey
from reconciler.model.plan import Kept
from reconciler.planner.calendar import idle_seconds_required
from reconciler.planner.cycle import Cycle
from reconciler.planner.idleness import idle_for, is_empty
from reconciler.planner.inventory import FleetStatus, is_draining
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.policies.scale_in.safety import begin_removals
from reconciler.planner.text import duration, rfc3339

_PROTECTIONS = (
    (DO_NOT_DISRUPT, "true"),
    ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"),
    ("karpenter.sh/do-not-disrupt", "true"),
)


def remove_empty(cycle: Cycle) -> None:
    """Start timers, stop those of nodes in use, and taint what has been empty long enough."""
    ripe: list[tuple[timedelta, Node, FleetStatus]] = []
    for node in cycle.nodes.values():
        key = cycle.inventory.fleet_of_node.get(node.name)
        if key is None or is_draining(node) or node.name in cycle.inventory.leaving:
            continue
        if not is_empty(cycle, node):
            _stop_timer(cycle, node)
            continue
        found = _ripe(cycle, node, cycle.statuses[key])
        if found is not None:
            ripe.append((found, node, cycle.statuses[key]))
    ripe.sort(key=lambda entry: (-entry[0], entry[1].name))
    begin_removals(cycle, [action for _, action in _limited(cycle, ripe)])


def protected(node: Node) -> bool:
    """Whether an annotation forbids to remove the node voluntarily."""
    return any(node.annotations.get(key) == value for key, value in _PROTECTIONS)


def _stop_timer(cycle: Cycle, node: Node) -> None:
    if UNNEEDED_SINCE in node.annotations:
        cycle.actions.append(
            AnnotateNode(
                node=node.name,
                key=UNNEEDED_SINCE,
                value=None,
                policy="scale-in",
                because="the node is used again",
            )
        )


def _keep(cycle: Cycle, node: Node, code: str, detail: str) -> None:
    cycle.kept.append(Kept(node=node.name, code=code, detail=detail))


def _bar(node: Node) -> tuple[str, str] | None:
    """What forbids the node's voluntary end, whatever its idle time."""
    if protected(node):
        return "protected", "an annotation forbids to remove it"
    if node.unreadable or node.deleting or node.instance_id is None:
        return "unreadable", "it cannot be read or has no instance"
    return None if node.ready else ("not-ready", "it is not Ready")


def _ripe(cycle: Cycle, node: Node, status: FleetStatus) -> timedelta | None:
    """How long the node has been empty, when that is long enough and nothing forbids its end."""
    bar = _bar(node)
    if bar is not None:
        _keep(cycle, node, *bar)
        return None
    idle = idle_for(cycle, node)
    if idle is None:
        _start_timer(cycle, node)
        idle = timedelta(0)
    required = timedelta(
        seconds=idle_seconds_required(status.settings, cycle.at, cycle.settings.timezone)
    )
    if idle < required:
        waits = duration(required - idle)
        _keep(cycle, node, "idle-time", f"empty for {duration(idle)}, {waits} to go")
        return None
    return idle


def _start_timer(cycle: Cycle, node: Node) -> None:
    cycle.actions.append(
        AnnotateNode(
            node=node.name,
            key=UNNEEDED_SINCE,
            value=rfc3339(cycle.at),
            policy="scale-in",
            because="the node is empty: its idle time counts from now",
        )
    )


def _limited(
    cycle: Cycle, ripe: list[tuple[timedelta, Node, FleetStatus]]
) -> list[tuple[Node, TaintNode]]:
    """As many as min_capacity, spares and `max_empty_at_once` allow, the longest idle first."""
    draining = sum(1 for node in cycle.nodes.values() if is_draining(node))
    leaving: dict[FleetKey, int] = {}
    spares: dict[tuple[FleetKey, str], int] = {}
    chosen: list[tuple[Node, TaintNode]] = []
    for idle, node, status in ripe:
        settings = status.settings.scale_in
        if draining + len(chosen) >= settings.empty_at_once_max:
            _keep(cycle, node, "max-empty-at-once", "enough nodes are leaving at once")
            continue
        remaining = cycle.targets[status.key] - len(status.draining) - leaving.get(status.key, 0)
        if remaining <= status.min:
            _keep(cycle, node, "min-capacity", f"the fleet is at its min_capacity of {status.min}")
            continue
        kind = (status.key, node.labels.get(INSTANCE_TYPE, ""))
        young = idle.total_seconds() < settings.type_idle_threshold_seconds
        if young and spares.get(kind, 0) < settings.type_spares:
            spares[kind] = spares.get(kind, 0) + 1
            _keep(cycle, node, "type-spares", "kept as a spare of its instance type")
            continue
        leaving[status.key] = leaving.get(status.key, 0) + 1
        chosen.append((node, _taint(node, idle)))
    return chosen


def _taint(node: Node, idle: timedelta) -> TaintNode:
    return TaintNode(
        node=node.name,
        taint=Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule"),
        policy="scale-in",
        because=f"empty for {duration(idle)}",
    )

"""Empty nodes: the timer, the limits, the taint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.cycle import Removal
from reconciler.planner.disruption.blockers import first_blocker, irreplaceable_pod
from reconciler.planner.fleets.inventory import FleetStatus, is_joining
from reconciler.planner.leaving.drains import taint
from reconciler.planner.leaving.idleness import idle_for, is_empty
from reconciler.planner.leaving.kept import keep
from reconciler.planner.leaving.timers import start_timer
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.policies.scale_in.bars import NEEDED_BACK, at_minimum
from reconciler.planner.policies.scale_in.calendar import idle_seconds_required
from reconciler.planner.policies.scale_in.scene import Scene, open_nodes
from reconciler.planner.settings import DisruptionReason
from reconciler.planner.text import duration

Ripe = tuple[timedelta, Node, FleetStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class RipeNodes:
    """Nodes that have been empty long enough."""

    nodes: tuple[Ripe, ...]
    """Empty longest first."""
    spares: frozenset[NodeName]
    """Those of them that are kept all the same."""

    @property
    def removable(self) -> frozenset[NodeName]:
        """Those that may go."""
        return frozenset(node.name for _, node, _ in self.nodes) - self.spares


def find_ripe(scene: Scene) -> RipeNodes:
    """Start timers of empty nodes, and tell which have been empty long enough."""
    cycle = scene.cycle
    ripe: list[Ripe] = []
    for node, key in open_nodes(cycle):
        if is_empty(cycle, node):
            found = _ripe(scene, node, cycle.statuses[key])
            if found is not None:
                ripe.append((found, node, cycle.statuses[key]))
    ripe.sort(key=lambda each: (-each[0], each[1].name))
    return RipeNodes(nodes=tuple(ripe), spares=_spares(ripe))


def remove_empty(scene: Scene, ripe: RipeNodes, awaited: Mapping[NodeName, NodeName]) -> None:
    """Taint what has been empty long enough.

    Args:
        scene: The run.
        ripe: What may go.
        awaited: Those of them that stay for the pods of another node, which is named.
    """
    cycle = scene.cycle
    for idle, node, status in ripe.nodes:
        if node.name in ripe.spares:
            keep(cycle, node, "type-spares", "kept as a spare of its instance type")
            scene.closed.add(node.name)  # no destination either: a spare is kept idle
            scene.spares.add(node.name)
        elif node.name in awaited and scene.room.may_leave(status.key):
            source = awaited[node.name]
            keep(cycle, node, "consolidation", f"it costs less than {source}, whose pods can come")
            scene.wait(node.name)
        else:
            _remove(scene, idle, node, status)


def _ripe(scene: Scene, node: Node, status: FleetStatus) -> timedelta | None:
    """How long the node has been empty, when that is long enough and nothing forbids its end."""
    cycle = scene.cycle
    found = first_blocker(cycle, node, status) or irreplaceable_pod(
        scene.judge(status.settings), cycle.pods_on.get(node.name, [])
    )
    if found is not None:
        keep(cycle, node, *found)
        return None
    if is_joining(node, cycle.at, cycle.settings.instance_init_seconds):
        keep(cycle, node, "not-ready", "it is still starting: pods that wait count on it")
        return None
    noted = idle_for(cycle, node)
    if noted is None:
        start_timer(cycle, node, "the node is empty: its idle time counts from now")
    idle = noted or timedelta(0)
    required = timedelta(
        seconds=idle_seconds_required(status.settings, cycle.at, cycle.settings.timezone)
    )
    if idle < required:
        waits = duration(required - idle)
        keep(cycle, node, "idle-time", f"empty for {duration(idle)}, {waits} to go")
        if scene.room.may_leave(status.key):
            scene.wait(node.name, mark=noted is not None)
        return None
    return idle


def _spares(ripe: Sequence[Ripe]) -> frozenset[NodeName]:
    """Per fleet and instance type as many as are asked for, idle below `type_idle_threshold`."""
    counts: dict[tuple[object, str], int] = {}
    kept: set[NodeName] = set()
    for idle, node, status in ripe:
        settings = status.settings.scale_in
        kind = (status.key, node.labels.get(INSTANCE_TYPE, ""))
        young = idle.total_seconds() < settings.type_idle_threshold_seconds
        if young and counts.get(kind, 0) < settings.type_spares:
            counts[kind] = counts.get(kind, 0) + 1
            kept.add(node.name)
    return frozenset(kept)


def _remove(scene: Scene, idle: timedelta, node: Node, status: FleetStatus) -> None:
    """As far as the limits allow."""
    cycle, most = scene.cycle, status.settings.scale_in.empty_at_once_max
    if not scene.room.may_leave(status.key):
        keep(cycle, node, *at_minimum(status))
    elif scene.draining_before + scene.empty_begun >= most:
        keep(cycle, node, "max-empty-at-once", "enough nodes are leaving at once")
        scene.wait(node.name)
    elif budget := scene.budgets.blocker(status.key, _reason(status)):
        keep(cycle, node, *budget)
        scene.wait(node.name)
    elif not _spare(scene, node, status):
        keep(cycle, node, *NEEDED_BACK)
    else:
        scene.room.leave(status.key)
        scene.budgets.take(status.key)
        scene.empty_begun += 1
        scene.closed.add(node.name)
        because = f"empty for {duration(idle)}"
        actions = (taint(node, "scale-in", because),)
        cycle.removals.append(Removal(key=status.key, node=node.name, actions=actions))


def _reason(status: FleetStatus) -> DisruptionReason:
    """An empty node of a fleet that is to go differs from what the config asks for."""
    return "drifted" if status.settings.departing else "empty"


def _spare(scene: Scene, node: Node, status: FleetStatus) -> bool:
    """Whether demand of this plan could do without the node."""
    staying = np.zeros(scene.cycle.sim.rows, dtype=np.bool_)
    gone = scene.closed | scene.draining | {node.name}
    staying[[row for name, row in scene.cycle.row_of.items() if name not in gone]] = True
    return scene.reserve.holds(status.settings.sector, staying)

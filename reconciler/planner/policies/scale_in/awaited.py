"""Idle nodes that a consolidation is about to fill: ended now, they would be bought again."""

from collections.abc import Mapping

from reconciler.model.ids import NodeName
from reconciler.planner.moves import Mover, grouped
from reconciler.planner.policies.scale_in.candidates import Candidate, examined, may_go_in_time
from reconciler.planner.policies.scale_in.consolidate import Consolidator
from reconciler.planner.policies.scale_in.empty import RipeNodes
from reconciler.planner.policies.scale_in.scene import Scene


def find_awaited(
    scene: Scene, candidates: list[Candidate], ripe: RipeNodes
) -> Mapping[NodeName, NodeName]:
    """The nodes that had better wait for the pods of a dearer node, and which that is.

    They wait as long as it is only time, or its turn, that keeps the dearer node from being
    emptied: a budget, a rest after a failed drain or min_capacity may last.

    Args:
        scene: The run, before empty nodes are removed.
        candidates: Every node that may be emptied.
        ripe: The nodes that have been empty long enough to go, and the spares among them, which
            take no pods.
    """
    removable = ripe.removable
    if not (scene.cycle.settings.consolidation and candidates and removable):
        return {}
    idle = scene.leaving | removable | ripe.spares
    mover = Mover(scene.cycle, idle, [c.node.name for c in candidates[::-1]])
    consolidator = Consolidator(scene, mover)
    found: dict[NodeName, NodeName] = {}
    begin = mover.mark()
    for candidate in examined(scene, candidates):
        if mover.staying_alone(candidate.node) and scene.room.may_leave(candidate.status.key):
            for name in _destinations(scene, mover, consolidator, candidate, removable):
                found.setdefault(name, candidate.node.name)
    mover.undo(begin)
    return found


def _destinations(
    scene: Scene,
    mover: Mover,
    consolidator: Consolidator,
    candidate: Candidate,
    removable: frozenset[NodeName],
) -> frozenset[NodeName]:
    """Which of the removable nodes its pods need; none when they fit on others, or may not go.

    Its pods take their places all the same, as they do when timers are looked after: else two
    nodes could wait for each other.
    """
    may_go = may_go_in_time(scene, candidate)
    groups = grouped(scene.cycle, candidate.moving)
    if mover.move(candidate.node, groups) is not None:
        return frozenset()
    rows = consolidator.cheaper_rows(candidate, scene.waiting)
    rows += consolidator.cheaper_rows(candidate, removable)
    rows += consolidator.coming_rows(candidate)
    moves = mover.move(candidate.node, groups, rows) if rows else None
    if (
        moves is None
        or not may_go
        or not mover.survives_spreading(moves, groups)
        or not scene.reserve.holds(candidate.status.settings.sector, mover.staying)
    ):
        return frozenset()
    return removable & {scene.cycle.row_name(row) for row in moves.rows}

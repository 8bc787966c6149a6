"""Idle nodes that pods of others are about to fill: ended now, they would be bought again."""

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.ids import NodeName
from reconciler.planner.leaving.mover import Mover
from reconciler.planner.leaving.moves import Moves
from reconciler.planner.policies.scale_in.candidates import Candidate, examined, may_go_in_time
from reconciler.planner.policies.scale_in.consolidate import is_departing
from reconciler.planner.policies.scale_in.departures import Departures
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
    wanted = scene.cycle.settings.consolidation or any(map(is_departing, candidates))
    if not (wanted and candidates and removable):
        return {}
    open_to_pods = removable | ripe.spares
    seen = replace(scene, spares={*scene.spares, *open_to_pods})
    last = [c.node.name for c in reversed(candidates)]
    mover = Mover(scene.cycle, scene.closed | open_to_pods, last, scene.under_way)
    looked_at = examined(scene, candidates)
    departures = Departures(seen, mover, looked_at)
    found: dict[NodeName, NodeName] = {}
    begin = mover.mark()
    for candidate in looked_at:
        # As with the timers: pods of a fleet at its minimum keep their places.
        if mover.staying_alone(candidate.node) and scene.room.may_leave(candidate.status.key):
            coming = departures.consolidator.coming_rows(candidate)
            idle = departures.consolidator.cheaper_rows(candidate, removable)
            moves = departures.leave(candidate, [*idle, *coming])
            if isinstance(moves, Moves) and may_go_in_time(scene, candidate):
                for row in set(moves.rows).intersection(idle):
                    found.setdefault(scene.cycle.row_name(row), candidate.node.name)
    mover.undo(begin)
    return found

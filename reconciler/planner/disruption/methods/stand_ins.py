"""Method: annotates on-demand nodes that stand in for spot nodes, so that this survives a restart.

`planner.fleets.spot.stand_ins` says which nodes these are.
"""

from reconciler.model.actions import FALLBACK_FROM
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.actions import annotate
from reconciler.planner.fleets.spot.stand_ins import find_stand_ins
from reconciler.planner.nodes.drain_taints import is_draining


def propose(builder: PlanBuilder) -> None:
    """Note on each new stand-in the fleet that it stands in for."""
    view = builder.view
    young_seconds = view.settings.instance_init_seconds
    for stand_in in find_stand_ins(view.inventory, view.at, young_seconds):
        if FALLBACK_FROM in stand_in.node.annotations or is_draining(stand_in.node):
            continue
        name = stand_in.instead_of.name
        because = f"it was bought while {name} was unavailable"
        builder.change_nodes(annotate(stand_in.node, FALLBACK_FROM, name, "scale-up", because))

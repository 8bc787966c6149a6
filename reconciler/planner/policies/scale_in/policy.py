"""The order of scale-in (docs/scale-in.md)."""

from reconciler.planner.cycle import Cycle
from reconciler.planner.disruption.soft_taints import mark_unneeded
from reconciler.planner.policies.scale_in.awaited import find_awaited
from reconciler.planner.policies.scale_in.candidates import find_candidates
from reconciler.planner.policies.scale_in.empty import find_ripe, remove_empty
from reconciler.planner.policies.scale_in.scene import set_scene
from reconciler.planner.policies.scale_in.under_used import remove_under_used
from reconciler.planner.policies.scale_in.under_way import finish_leaving


def propose(cycle: Cycle) -> None:
    """End what was being emptied, then begin with nodes that are empty, then with under-used."""
    cycle.sim.lends = False  # whoever moves must not push headroom out, which would buy it again
    scene = set_scene(cycle, finish_leaving(cycle))
    ripe = find_ripe(scene)
    candidates = find_candidates(scene)
    remove_empty(scene, ripe, find_awaited(scene, candidates, ripe))
    remove_under_used(scene, candidates)
    mark_unneeded(cycle, scene.unneeded, scene.not_looked_at, scene.room.left)
    cycle.sim.lends = True

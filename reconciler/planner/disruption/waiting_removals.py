"""What a fleet whose removal was approved still waits for."""

from collections.abc import Mapping

from reconciler.model.ids import NodeName
from reconciler.model.plan import Kept
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.view import ClusterView

_REASONS_MAX = 3


def removal_of(view: ClusterView, status: FleetStatus, kept: Mapping[NodeName, Kept]) -> str:
    """Return what is left of a fleet whose removal was approved, and why; empty if nothing is.

    Args:
        view: The facts.
        status: The fleet.
        kept: Why nodes stay.
    """
    if not status.settings.departing:
        return ""
    names = sorted(node.name for node in status.nodes)
    if not names:
        return f"{counted_noun(status.current, 'instance')} still to end" if status.current else ""
    pods = sum(len(counted(view.pods_on.get(name, ()))) for name in names)
    left = f"{counted_noun(len(names), 'node')} with {counted_noun(pods, 'pod')} left"
    staying = [kept[name] for name in names if name in kept]
    reasons = dict.fromkeys(f"{each.code}: {each.detail}" for each in staying)
    shown = "; ".join(list(reasons)[:_REASONS_MAX])
    return f"{left}; {shown}" if shown else f"{left}, being drained"

"""What a fleet whose removal was approved still waits for."""

from collections.abc import Iterable, Mapping

from reconciler.model.cluster import PodSpec
from reconciler.model.ids import NodeName
from reconciler.model.plan import Kept
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.demand import FLEET, SECTOR, SIZE, SectorFinder, wanted_values
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.maximum import maximum_reached
from reconciler.planner.settings import PlannerSettings
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


def selects_only_what_goes(settings: PlannerSettings, specs: Iterable[PodSpec]) -> str:
    """Return the label that lets one of the pods run on departing fleets only; empty if none."""
    staying = [fleet for fleet in settings.fleets() if not fleet.departing]
    sectors = {fleet.sector for fleet in staying}
    names = {SECTOR: sectors, FLEET: {f.name for f in staying}, SIZE: {f.size for f in staying}}
    for spec in specs:
        for key, known in names.items():
            wanted = wanted_values(spec, key)
            if wanted and not known.intersection(wanted):
                return f"{key}={', '.join(wanted)}"
    return ""


def why_nothing_is_bought(builder: PlanBuilder, specs: Iterable[PodSpec]) -> str:
    """Return for each staying fleet of the pods' sectors why it buys no node for such pods."""
    view = builder.view
    finder = SectorFinder(view.settings)
    served = {sector for spec in specs for sector in finder.served_by(spec)}
    reasons = [
        f"{status.key.name} {_why_not(builder, status)}"
        for status in view.inventory.fleets
        if status.settings.sector in served and not status.settings.departing
    ]
    more = len(reasons) - _REASONS_MAX
    rest = f", and {counted_noun(more, 'more fleet')}" if more > 0 else ""
    return ", ".join(reasons[:_REASONS_MAX]) + rest or "no fleet of its sector stays"


def _why_not(builder: PlanBuilder, status: FleetStatus) -> str:
    if status.unavailable:
        return f"cannot be asked for more: {status.unavailable}"
    if status.max is not None and builder.size_of(status.key) >= status.max:
        return maximum_reached(status, builder.size_of(status.key))[1]
    price = builder.view.offers[status.key].nano_usd_per_hour
    if any(price > limit.left for limit in cost_limits(builder, status.settings.sector)):
        return "would cost more than the limit allows"
    return "has no node that takes all of them"

"""Why the pods of a node fit nowhere, and what would have to change."""

from collections.abc import Iterable

from reconciler.model.cluster import PodSpec
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.demand import FLEET, SECTOR, SIZE, SectorFinder, wanted_values
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.maximum import maximum_reached
from reconciler.planner.settings import PlannerSettings

_REASONS_MAX = 3


def no_destination(builder: PlanBuilder, candidate: Candidate) -> Blocker:
    """Return the blocker of a node whose pods fit nowhere, with what would have to change."""
    nowhere = "its pods fit on no other node"
    if candidate.outdated is not None:
        nowhere = f"{candidate.because}; {nowhere}"
    if not candidate.must_go:
        return Blocker("no-destination", nowhere)
    specs = [pod.spec for pod in candidate.placed]
    departing = candidate.status.settings.departing
    label = _selects_only_what_goes(builder.view.settings, specs) if departing else ""
    if label:
        owner = f"pods there select {label}, which only fleets that are being removed have"
        return Blocker(
            "no-destination", f"{owner}: it stays until their owner changes the selector"
        )
    return Blocker("no-destination", f"{nowhere}: {_why_nothing_is_bought(builder, specs)}")


def _selects_only_what_goes(settings: PlannerSettings, specs: Iterable[PodSpec]) -> str:
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


def _why_nothing_is_bought(builder: PlanBuilder, specs: Iterable[PodSpec]) -> str:
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

"""`config/range` for disruption budgets: a schedule needs a duration and excludes a window."""

from collections.abc import Iterator

from reconciler.config.faults import RANGE
from reconciler.config.rules.document import Document, Location
from reconciler.config.tree import Mapping
from reconciler.model.errors import Problem

_KEY = "disruption_budgets"
_WINDOW = ("starts", "ends", "days")


def check_disruption_budgets(document: Document) -> Iterator[Problem]:
    """Yield budgets of the cluster, sectors and fleets whose keys contradict each other."""
    owners: list[tuple[Location, Mapping]] = [((), document.root)]
    owners += [(("sectors", name), sector) for name, sector in document.sectors()]
    owners += [(fleet.location, fleet.entry) for fleet in document.fleets()]
    for location, owner in owners:
        for index, item in owner.items(_KEY):
            if isinstance(item.value, Mapping):
                place = (*location, _KEY, index)
                yield from _check(document, place, item.value)


def _check(document: Document, place: Location, budget: Mapping) -> Iterator[Problem]:
    scheduled, lasting = budget.states("schedule"), budget.states("duration")
    if scheduled and not lasting:
        message = "needs a duration: how long the budget holds from each moment of the schedule"
        yield document.problem(RANGE, (*place, "schedule"), message)
    if lasting and not scheduled:
        message = "needs a schedule: a cron expression that says when the budget begins to hold"
        yield document.problem(RANGE, (*place, "duration"), message)
    for key in _WINDOW:
        if scheduled and budget.states(key):
            message = "a budget has a schedule or a window, not both; write two budgets"
            yield document.problem(RANGE, (*place, key), message)

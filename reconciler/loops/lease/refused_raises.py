"""Raises of targets that EC2 refuses: their fleets get a cool-off, and demand goes to others."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import SetCapacity
from reconciler.model.errors import Conflict, Forbidden, InsufficientCapacity, Refused
from reconciler.model.ids import Region
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.cool_off import COOL_OFF
from reconciler.planner.fleets.health import denied, refused

DENIED_FOR: Final = timedelta(minutes=2)
"""How long every raise of a fleet has to be refused, for a reason other than capacity, before
demand goes elsewhere. A conflict with another writer, or a busy group, ends before that."""
_DENIALS: Final = frozenset(each.__name__ for each in (Conflict, Forbidden, Refused))
_Place = tuple[str, Region]


@dataclass(slots=True)
class RefusedRaises:
    """Decides which fleets get a cool-off because of what the execution of a plan returned.

    Such a refusal of ModifyFleet (a limit of vCPUs, a missing right) is not in the fleet's history.
    Since when a fleet is denied is known only to this process: after a restart it is observed
    again.
    """

    _denied: dict[_Place, tuple[datetime, datetime]] = field(default_factory=dict)
    """When a raise was first and last denied, with none that succeeded between."""

    def noted_in(self, plan: Plan, outcomes: Iterable[Outcome]) -> Plan:
        """Return the plan with the cool-offs that follow from the outcomes of its raises."""
        fleet_states = {(m.fleet, m.region): m for m in plan.fleet_states}
        for outcome in outcomes:
            action = outcome.action
            if not isinstance(action, SetCapacity) or action.to_capacity < action.from_capacity:
                continue
            place = (action.fleet, action.region)
            known = fleet_states.get(place, SavedFleetState(fleet=place[0], region=place[1]))
            lasting = self._is_denied_for_long(place, outcome, plan.at)
            if known.unavailable_until is not None and known.unavailable_until > plan.at:
                continue  # a minimum is asked for during a cool-off too: the cool-off continues
            if outcome.error == InsufficientCapacity.__name__:
                fleet_states[place] = refused(known, outcome.detail, plan.at)
            elif lasting:
                fleet_states[place] = denied(known, outcome.detail, plan.at)
        return replace(
            plan, fleet_states=tuple(fleet_states[place] for place in sorted(fleet_states))
        )

    def _is_denied_for_long(self, place: _Place, outcome: Outcome, at: datetime) -> bool:
        """Note the outcome; return whether every raise was denied for long, this one too."""
        if outcome.settled:
            self._denied.pop(place, None)
        if outcome.error not in _DENIALS:
            return False
        first, last = self._denied.get(place, (at, at))
        if at - last > COOL_OFF + DENIED_FOR:
            first = at  # a denial of hours ago says nothing about this one
        self._denied[place] = first, at
        return at - first >= DENIED_FOR
